// Find the sentences that state the facts of a passage in its text. A statement may lack the marks and the addresses of
// the text, have a name for a pronoun, or a title before it.

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const ALIKE = 0.7; // of the words of a sentence are in the statement
const FEW_WORDS = 3; // a shorter sentence has to be the statement itself
const SENTENCES = new Intl.Segmenter("en", { granularity: "sentence" });

export interface Part {
  text: string;
  isStatement: boolean;
}

/** Split a text where a statement begins and ends: the same words in the same order, else sentences with its words. */
export function markStatements(text: string, statements: readonly string[]): Part[] {
  const words = [...text.matchAll(WORD)].map((found) => ({
    word: found[0].toLowerCase(),
    start: found.index,
    end: found.index + found[0].length,
  }));
  const isMarked = new Array<boolean>(words.length).fill(false);
  for (const statement of statements) for (const index of findStatement(text, words, listWords(statement))) isMarked[index] = true;
  const parts: Part[] = [];
  let last = 0;
  for (let index = 0; index < words.length; index++) {
    const isEnd = isMarked[index] !== (isMarked[index + 1] ?? !isMarked[index]);
    if (!isEnd) continue;
    const end = isMarked[index] ? words[index]!.end : (words[index + 1]?.start ?? text.length);
    parts.push({ text: text.slice(last, end), isStatement: isMarked[index] ?? false });
    last = end;
  }
  return [...parts, { text: text.slice(last), isStatement: false }].filter((part) => part.text);
}

function listWords(text: string): string[] {
  return [...text.matchAll(WORD)].map(([word]) => word.toLowerCase());
}

/** Return the indices of the words that state something. */
function findStatement(text: string, words: ReadonlyArray<{ word: string; start: number }>, wanted: readonly string[]): number[] {
  const first = findWords(words.map(({ word }) => word), wanted);
  if (first >= 0) return wanted.map((_, offset) => first + offset);
  const sentences = findSentences(text, wanted);
  return words.flatMap(({ start }, index) => (sentences.some(([from, to]) => start >= from && start < to) ? [index] : []));
}

function findWords(words: readonly string[], wanted: readonly string[]): number {
  if (!wanted.length) return -1;
  return words.findIndex((_, first) => wanted.every((word, index) => words[first + index] === word));
}

/** Return where the sentences begin and end whose words are nearly all in a statement. */
function findSentences(text: string, wanted: readonly string[]): Array<[number, number]> {
  const known = new Set(wanted);
  const found: Array<[number, number]> = [];
  for (const { segment, index } of SENTENCES.segment(text)) {
    const words = listWords(segment);
    const shared = words.filter((word) => known.has(word)).length;
    if (words.length >= FEW_WORDS && shared >= ALIKE * words.length) found.push([index, index + segment.length]);
  }
  return found;
}
