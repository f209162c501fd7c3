// Write names and relations on a drawing so that they can be read across lines, in light and dark.

const HALO = 4; // pixels around a word, in the colour of the paper
const MARGIN = 70; // pixels around a graph, for names beside it
const GAP = 3; // pixels between a name and its dot

export const FEW_RELATIONS = 40; // names, up to which the relations are written on the lines
export const TOLERANCE = 3; // pixels, up to which a drag is a click

export interface Colours {
  ink: string;
  quiet: string;
  paper: string;
}

/** How a drawing shows a graph. It follows the graph's own events. */
export interface Renderer {
  paint(colours: Colours): void;
  /** Run this now, or when the mouse lets go of the drawing. */
  wait(action: () => void): void;
  stop(): void;
}

export interface Words {
  text: string;
  x: number; // where it begins
  y: number; // its middle
  size: number;
  font: string;
  colour: string;
}

/** Write words with the colour of the paper around them. */
export function write(context: CanvasRenderingContext2D, { text, x, y, size, font, colour }: Words, paper: string): void {
  context.font = `${size}px ${font}`;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = HALO;
  context.strokeStyle = paper;
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

/** Write a name at the right of its dot, or at the left where it would end outside of the drawing. */
export function writeName(context: CanvasRenderingContext2D, words: Words, radius: number, paper: string): void {
  context.font = `${words.size}px ${words.font}`;
  const width = context.measureText(words.text).width;
  const right = words.x + radius + GAP;
  const left = words.x - radius - GAP - width;
  const hasRoom = right + width <= context.canvas.clientWidth || left < 0;
  write(context, { ...words, x: hasRoom ? right : left }, paper);
}

/** Return the room around a graph in pixels: less in a narrow drawing. */
export function findMargin({ clientWidth }: HTMLElement): number {
  return Math.min(MARGIN, clientWidth / 10);
}
