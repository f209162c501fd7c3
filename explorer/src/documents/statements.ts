// Find the sentences that state the facts of a passage in its text, though the text has marks that they lack.

const WORD = /[\p{L}\p{N}\p{M}]+/gu;

export interface Part {
  text: string;
  isStatement: boolean;
}

/** Split a text where a statement begins and ends: where the same words stand in the same order. */
export function markStatements(text: string, statements: readonly string[]): Part[] {
  const words = [...text.matchAll(WORD)].map((found) => ({
    word: found[0].toLowerCase(),
    start: found.index,
    end: found.index + found[0].length,
  }));
  const isMarked = new Array<boolean>(words.length).fill(false);
  for (const statement of statements) {
    const wanted = [...statement.matchAll(WORD)].map(([word]) => word.toLowerCase());
    const first = findWords(words.map(({ word }) => word), wanted);
    if (first >= 0) isMarked.fill(true, first, first + wanted.length);
  }
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

function findWords(words: readonly string[], wanted: readonly string[]): number {
  if (!wanted.length) return -1;
  return words.findIndex((_, first) => wanted.every((word, index) => words[first + index] === word));
}
