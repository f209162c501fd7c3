import { fileURLToPath } from "node:url";

import { defineConfig } from "vite";

// The page is served from the package, also below a prefix of a proxy, so its files are named relatively.
export default defineConfig({
  base: "./",
  resolve: { alias: { waylore: fileURLToPath(new URL("../clients/typescript/dist/index.js", import.meta.url)) } },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/waylore/surfaces/explorer/page",
    emptyOutDir: true,
    assetsInlineLimit: 0, // a file is a file: the policy of the page allows nothing inline
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // light-dark() stays as it is written
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8080" } },
});
