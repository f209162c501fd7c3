// Texts come from other people: show them without hidden characters, and mark the words of the question in them.

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const LINK = /(?<before>!?\[|\[\[)(?<words>[^[\]\n]+)(?<after>\]\([^()\s]*(?:\s"[^"\n]*")?\)|(?<=\[\[[^[\]\n]+)\]\])/g;
const STOP_WORDS = new Set(
  (
    "a an and are as at be been being but by can could did do does for from had has have he her his how i if in into " +
    "is it its me my no not of on or our she so such than that the their them then there these they this to too very " +
    "was we were what when where which who whom whose why will with would you your"
  ).split(" "),
);

export interface Piece {
  text: string;
  mark: "" | "word" | "name" | "link"; // the signs and the address around the words of a link of Markdown
}

export function clean(text: string): string {
  return text.replace(HIDDEN, "");
}

/** Write a predicate as people do: `owned_by` becomes `owned by`. */
export function spell(predicate: string): string {
  return clean(predicate).replaceAll("_", " ");
}

/** Return the stem of a word, roughly as the search for words does. */
export function stem(word: string): string {
  const low = word.toLowerCase();
  if (low.length < 4) return low;
  const cut = low.replace(/(?:ies|ied)$/, "i").replace(/(?:ations?|ings?|edly|ed|ers?|ly|es|s|e)$/, "");
  const kept = cut.length < 3 ? low : cut;
  return kept.replace(/([b-df-hj-np-tv-z])\1$/, "$1").replace(/y$/, "i");
}

export function listTerms(question: string): Set<string> {
  const words = [...question.matchAll(WORD)].map(([word]) => word).filter((word) => !STOP_WORDS.has(word.toLowerCase()));
  return new Set(words.map(stem));
}

/** Split a text at its links, its names and the words of the question. */
export function split(text: string, terms: ReadonlySet<string>, names: readonly string[] = []): Piece[] {
  const pieces: Piece[] = [];
  let last = 0;
  for (const { index, 0: whole, groups } of text.matchAll(LINK)) {
    const { before = "", words = "", after = "" } = groups ?? {};
    pieces.push(...splitNames(text.slice(last, index), terms, names), { text: before, mark: "link" });
    pieces.push(...splitNames(words, terms, names), { text: after, mark: "link" });
    last = index + whole.length;
  }
  return [...pieces, ...splitNames(text.slice(last), terms, names)];
}

function splitNames(text: string, terms: ReadonlySet<string>, names: readonly string[]): Piece[] {
  const wanted = names.filter((name) => name.trim().length > 1).map((name) => escape(name.trim()));
  if (!wanted.length) return splitWords(text, terms);
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${wanted.join("|")})(?![\\p{L}\\p{N}])`, "giu");
  const pieces: Piece[] = [];
  let last = 0;
  for (const found of text.matchAll(pattern)) {
    pieces.push(...splitWords(text.slice(last, found.index), terms), { text: found[0], mark: "name" });
    last = found.index + found[0].length;
  }
  return [...pieces, ...splitWords(text.slice(last), terms)];
}

function splitWords(text: string, terms: ReadonlySet<string>): Piece[] {
  const pieces: Piece[] = [];
  let last = 0;
  for (const found of text.matchAll(WORD)) {
    if (!terms.has(stem(found[0]))) continue;
    pieces.push({ text: text.slice(last, found.index), mark: "" }, { text: found[0], mark: "word" });
    last = found.index + found[0].length;
  }
  return [...pieces, { text: text.slice(last), mark: "" as const }].filter((piece) => piece.text);
}

function escape(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Return a time as a day. A time without hours is a day of the calendar everywhere. */
export function formatDay(time: string): string {
  const isDay = time.length === 10 || /T00:00:00(\.0+)?(Z|\+00:00)$/.test(time);
  const options: Intl.DateTimeFormatOptions = { day: "numeric", month: "short", year: "numeric" };
  return new Date(time).toLocaleDateString("en-GB", isDay ? { ...options, timeZone: "UTC" } : options);
}

export function count(number: number, noun: string): string {
  const plural = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${number.toLocaleString("en-GB")} ${number === 1 ? noun : plural}`;
}
