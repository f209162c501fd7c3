// A block of a passage: a paragraph, a heading, lines that stay as they are, a program, or a table.

import type { ComponentChildren } from "preact";

import { type Block, readTable } from "./blocks";

interface BlockProps {
  block: Block;
  show: (text: string) => ComponentChildren; // with its marks
}

export function BlockText({ block: { kind, text }, show }: BlockProps) {
  return kind === "table" ? <Table text={text} show={show} /> : <p class={kind}>{show(text)}</p>;
}

/** A table that scrolls in its own box, also by keyboard, if it is wider than the page. */
function Table({ text, show }: { text: string; show: BlockProps["show"] }) {
  const { rows, hasHead } = readTable(text);
  return (
    <div class="table" role="region" aria-label="Table" tabIndex={0}>
      <table>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, column) =>
                hasHead && row === 0 ? <th key={column}>{show(cell)}</th> : <td key={column}>{show(cell)}</td>,
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
