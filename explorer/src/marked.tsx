import { type Piece, clean, split } from "./text";

const LONG_LINK = 16; // characters, from which on the address of a link is shown in part

interface MarkedProps {
  text: string;
  terms: ReadonlySet<string>;
  names?: readonly string[];
}

/** A text with the words of the question and the names of the thread marked. */
export function Marked({ text, terms, names = [] }: MarkedProps) {
  return <>{split(clean(text), terms, names.map(clean)).map(showPiece)}</>;
}

function showPiece(piece: Piece, index: number) {
  if (piece.mark === "word") return <mark key={index}>{piece.text}</mark>;
  if (piece.mark === "name")
    return (
      <b key={index} class="named">
        {piece.text}
      </b>
    );
  if (piece.mark === "link")
    return (
      <span key={index} class={piece.text.length > LONG_LINK ? "link long" : "link"} title={piece.text}>
        {piece.text}
      </span>
    );
  return piece.text;
}
