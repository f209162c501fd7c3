// The question of the Ask view, as the address bar has it.

import type { Question } from "../types";

export const METHODS: ReadonlyArray<readonly [string, string]> = [
  ["", "as the service is set"],
  ["auto", "auto: chosen by the question"],
  ["chain", "chain: meaning, words and the graph"],
  ["hybrid", "hybrid: meaning and words"],
  ["vector", "vector: meaning only"],
  ["keyword", "keyword: words only"],
  ["neighbourhood", "neighbourhood: facts around the names"],
  ["guided", "guided: new searches along the graph"],
  ["activation", "activation: trust, age and use"],
  ["citations", "citations: what cites what"],
  ["deep", "deep: asks again for what is left open"],
  ["graph_only", "graph only"],
  ["conversation", "conversation: turns and those around them"],
  ["mixed", "mixed: documents and turns"],
];

export const FILTERS = ["method", "top_k", "labels", "user", "as_of", "since", "until"] as const;

type Method = NonNullable<Question["method"]>;

/** Return the question that the values of an address ask, or null if they ask none. */
export function readQuestion(values: Record<string, string>): Question | null {
  const query = values["q"]?.trim();
  if (!query) return null;
  const question: Question = { query };
  for (const name of ["user", "as_of", "since", "until"] as const) {
    const value = values[name];
    if (value) question[name] = value;
  }
  if (values["method"]) question.method = values["method"] as Method; // the service refuses other words
  const labels = listLabels(values["labels"] ?? "");
  if (labels.length) question.labels = labels;
  const hits = Number.parseInt(values["top_k"] ?? "", 10);
  if (hits > 0) question.top_k = hits;
  return question;
}

export function listLabels(text: string): string[] {
  return text
    .split(",")
    .map((label) => label.trim())
    .filter(Boolean);
}
