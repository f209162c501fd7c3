// Passages are parts of Markdown and other texts: split them into blocks that read well, and change no word.

export interface Block {
  kind: "heading" | "lines" | "paragraph" | "code" | "table";
  text: string;
}

const FRONT_MATTER = /^---\n([\s\S]*?)\n---\n/;
const HEADING = /^#{1,6}\s+/;
const LINE = /^\s*(?:[-*+>|]|\d+[.)]|\s{3})/; // lists, quotes and parts of tables keep their lines
const CODE = /(?:^|\n)(```|~~~)[^\n]*\n[\s\S]*?(?:\n\1[ \t]*(?=\n|$)|$)/; // to the end, if the passage ends in it
const INDENT = /^(?: {4}|\t)/;
const ITEM = /^\s*(?:[-*+]|\d+[.)])\s/; // what is indented below it belongs to it
const ROW = /^\s*\|.*\|\s*$/;
const RULE = /^(?=.*-)[\s|:-]+$/; // below the head of a table

export function splitBlocks(text: string): Block[] {
  const plain = text.replaceAll("\r\n", "\n").trim();
  const front = FRONT_MATTER.exec(`${plain}\n`);
  const blocks = splitCode(plain.slice(front?.[0].length ?? 0));
  return front?.[1] ? [{ kind: "lines", text: front[1] }, ...blocks] : blocks;
}

/** Split at programs first: they have empty lines and lines that look like headings. */
function splitCode(text: string): Block[] {
  const code = CODE.exec(text);
  if (!code) return splitText(text);
  const [before, after] = [text.slice(0, code.index), text.slice(code.index + code[0].length)];
  return [...splitText(before), { kind: "code", text: code[0].trim() }, ...splitCode(after)];
}

function splitText(text: string): Block[] {
  const parts = text.replace(/^\n+/, "").trimEnd().split(/\n\s*\n|\n(?=#{1,6}\s)|(?<=(?:^|\n)#{1,6}\s[^\n]*)\n/);
  const filled = parts.filter((part) => part.trim());
  return filled.map((part, index) => readBlock(part, filled[index - 1] ?? ""));
}

function readBlock(part: string, before: string): Block {
  if (HEADING.test(part)) return { kind: "heading", text: part.replace(HEADING, "").trim() };
  const lines = part.split("\n");
  if (lines.length > 1 && lines.every((line) => ROW.test(line))) return { kind: "table", text: part };
  if (lines.every((line) => INDENT.test(line)) && !ITEM.test(before)) return { kind: "code", text: part };
  if (lines.some((line) => LINE.test(line)) || lines.every((line) => line.length < 50)) return { kind: "lines", text: part };
  return { kind: "paragraph", text: lines.map((line) => line.trim()).join(" ") };
}

/** Return the cells of a table, and whether its first row is a head. */
export function readTable(text: string): { rows: string[][]; hasHead: boolean } {
  const lines = text.trim().split("\n");
  const rows = lines.filter((line) => !RULE.test(line)).map((line) => line.trim().slice(1, -1).split(/(?<!\\)\|/));
  return { rows, hasHead: RULE.test(lines[1] ?? "") };
}
