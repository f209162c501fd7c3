// The JSON of the service, as `waylore/surfaces/wire.py` describes it: what the page reads of it.

export interface Document {
  id: string;
  title: string;
  uri: string;
  source: string;
  metadata: Record<string, unknown>;
  labels: string[];
  recorded_at: string;
  user: string;
  agent: string;
  session: string;
  at: string | null;
  expires: string | null;
}

export interface Passage {
  id: string;
  document_id: string;
  title: string;
  text: string;
  position: number;
  headings: string[];
  speaker: string;
  at: string | null;
}

export interface Entity {
  id: string;
  name: string;
  type: string;
  description: string;
  aliases: string[];
  passages: number;
}

export interface Fact {
  id: string;
  subject: string;
  subject_id: string;
  predicate: string;
  object: string;
  object_id: string;
  statement: string;
  weight: number;
  confidence: number;
  source: string;
  status: string;
  valid_from: string | null;
  valid_to: string | null;
  passage_id: string;
}

export interface Explanation {
  value: number | null;
  description: string;
  details: Explanation[];
}

export interface Placement {
  search: string;
  rank: number | null;
  score: number;
  share: number;
  query: string;
  best: number | null;
}

export interface Step {
  fact_id: string;
  is_forward: boolean;
  kind: "typed" | "quoted" | "named";
  words: string;
}

export interface Path {
  start: string;
  steps: Step[];
  text: string;
}

export interface Days {
  first: string;
  last: string;
  words: string;
}

export interface Superseder {
  passage_id: string;
  text: string;
  at: string | null;
  kind: "changed" | "corrected" | "ended";
  since: string;
}

export interface Hit {
  score: number;
  passage: Passage;
  document: Document;
  placements: Placement[];
  path: Path | null;
  also_in: Document[];
  when: Days[];
  superseded_by: Superseder | null;
  is_planned: boolean;
  is_newer: boolean;
  explanation: Explanation | null;
}

export interface SetAnswer {
  summary: string;
  lines: string[];
  is_complete: boolean;
}

export interface SearchResult {
  query: string;
  hits: Hit[];
  recipe: string;
  route_reason: string;
  confidence: number | null;
  skip_reason: string;
  is_relevant: boolean | null;
  relevance_reason: string;
  spans: Days[];
  set_answer: SetAnswer | null;
  entities: Entity[];
  facts: Fact[];
  missing: string[];
  seconds: Record<string, number>;
}

export interface Statistics {
  documents: number;
  passages: number;
  entities: number;
  facts: number;
  model: string | null;
}

export interface Collection {
  name: string;
  description: string;
}

export interface DocumentPage {
  documents: Document[];
  next: string | null;
}

export interface IndexedDocument {
  document: Document;
  passages: Passage[];
  entities: Entity[];
  facts: Fact[];
}

export interface Receipt {
  documents: string[];
  passages: string[];
  entities: string[];
  facts: string[];
  missing: string[];
  id: string;
  unconfirmed: number;
}

export interface Job {
  id: string;
  uri: string;
  state: string;
  progress: { files: number; of_files: number; bytes: number; of_bytes: number; documents: number; passages: number };
  result: { documents?: number; passages?: number; facts?: number; skipped?: Array<{ uri: string; reason: string }> } | null;
  problem: string;
  ended_at: string | null;
}

export interface AssertionEnd {
  kind: "changed" | "corrected" | "ended";
  at: string;
}

export interface RelatedFact {
  subject: string;
  predicate: string;
  object: string;
  kind: "typed" | "quoted" | "same";
  is_forward: boolean;
  entity: Entity | null;
  quote: string;
  since: string | null;
  until: string | null;
  stated: string | null;
  fact: string;
  document: Document;
  end: AssertionEnd | null;
  branches: RelatedFact[];
}

export interface Related {
  name: string;
  complete: boolean;
  shown: number;
  total: number;
  is_exact: boolean;
  entities: Entity[];
  candidates: Entity[];
  similar: Entity[];
  facts: RelatedFact[];
}

export interface Connection {
  names: string[];
  paths: Array<{ start: Entity; hops: number; text: string; steps: RelatedFact[] }>;
  candidates: Record<string, Entity[]>;
  unknown: string[];
  entities: number;
  facts: number;
  exhaustive: boolean;
  text: string;
}

export interface EntityList {
  entities: Entity[];
  complete: boolean;
  total: number;
  is_exact: boolean;
  after: string;
}

export interface Assertion {
  fact: Fact;
  passage: Passage;
  session: string;
}

export interface Profile {
  user: string;
  lines: Array<{ text: string; assertions: Assertion[] }>;
  has_more: boolean;
}

export interface Change {
  kind: "began" | "changed" | "corrected" | "ended";
  at: string;
  before: Assertion | null;
  after: Assertion | null;
}

export interface ChangeList {
  changes: Change[];
  has_more: boolean;
}
