// Passages are parts of Markdown and other texts: split them into blocks that read well, and change no word.

export interface Block {
  kind: "heading" | "lines" | "paragraph";
  text: string;
}

const FRONT_MATTER = /^---\n([\s\S]*?)\n---\n/;
const HEADING = /^#{1,6}\s+/;
const LINE = /^\s*(?:[-*+>|]|\d+[.)]|```|\s{3})/; // lists, quotes, tables and code keep their lines

export function splitBlocks(text: string): Block[] {
  const plain = text.replaceAll("\r\n", "\n").trim();
  const front = FRONT_MATTER.exec(`${plain}\n`);
  const parts = plain.slice(front?.[0].length ?? 0).split(/\n\s*\n|\n(?=#{1,6}\s)|(?<=(?:^|\n)#{1,6}\s[^\n]*)\n/);
  const blocks = parts.filter((part) => part.trim()).map(readBlock);
  return front?.[1] ? [{ kind: "lines", text: front[1] }, ...blocks] : blocks;
}

function readBlock(part: string): Block {
  if (HEADING.test(part)) return { kind: "heading", text: part.replace(HEADING, "").trim() };
  const lines = part.split("\n");
  if (lines.some((line) => LINE.test(line)) || lines.every((line) => line.length < 50)) return { kind: "lines", text: part };
  return { kind: "paragraph", text: lines.map((line) => line.trim()).join(" ") };
}
