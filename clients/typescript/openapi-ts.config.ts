import { readFileSync } from "node:fs";
import { defineConfig } from "@hey-api/openapi-ts";

// The document of the service, as a client sees it: a `Waylore` has a collection of its own, so none has to be named in
// a call; a key is sent in one header, because the service refuses two; events are jobs; an export is a file.
const document = JSON.parse(readFileSync("openapi.json", "utf8"));
const operations = Object.values<object>(document.paths).flatMap((methods) => Object.values(methods));
for (const operation of operations) {
  for (const parameter of operation.parameters ?? []) {
    if (parameter.name === "collection") parameter.required = false;
  }
  operation.security = operation.security?.filter((scheme: object) => "HTTPBearer" in scheme);
  const content = operation.responses["200"]?.content ?? {};
  if ("text/event-stream" in content) {
    content["text/event-stream"].schema = { $ref: "#/components/schemas/JobResponse" };
  }
  if ("application/x-ndjson" in content) content["application/x-ndjson"].schema = { type: "string", format: "binary" };
}

export default defineConfig({
  input: document,
  logs: { file: false, level: "warn" },
  output: { path: "src/generated", module: { extension: ".js" } },
  plugins: [
    { name: "@hey-api/client-fetch", throwOnError: true },
    "@hey-api/typescript",
    {
      name: "@hey-api/sdk",
      responseStyle: "data",
      operations: { strategy: "single", containerName: "Operations" },
    },
  ],
});
