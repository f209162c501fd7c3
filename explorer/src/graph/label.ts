// Write names and relations on a drawing so that they can be read across lines, in light and dark, and cover each other
// nowhere: a word moves to another side of its dot, or along its line, or is left out until there is room.

import type Graph from "graphology";

const HALO = 4; // pixels around a word, in the colour of the paper
const MARGIN = 70; // pixels around a graph, for names beside it
const GAP = 4; // pixels between a name and its dot
const APART = 6; // pixels between words side by side
const NAME = 13; // pixels, height of letters
const RELATION = 11;
const LINE_HEIGHT = 1.25;
const LINE_LENGTH = 24; // characters of a relation, which may have two lines
const PLACES = [0.5, 0.4, 0.6, 0.3, 0.7]; // of a relation along its line, the best first
const CELL = { width: 100, height: 24 }; // with one name, if not every name is to be shown

const FEW_RELATIONS = 40; // names, up to which the relations are written on the lines
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

/** A drawn name. */
export interface Dot {
  id: string;
  text: string;
  x: number;
  y: number;
  radius: number;
  isForced: boolean; // shown wherever there is room, not only one in each cell
}

/** A drawn line with its relation. */
export interface Line {
  text: string;
  from: Dot;
  to: Dot;
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

interface Placed extends Box {
  id: string; // of the name; empty for a relation
  lines: string[];
  size: number;
  colour: string;
}

/** Return the lines that have a relation; none if there are too many names for it. */
export function listLines(graph: Graph, dots: ReadonlyMap<string, Dot>): Line[] {
  if (graph.order > FEW_RELATIONS) return [];
  const all = graph.mapEdges((_, { label }, from, to) => ({ text: String(label ?? ""), from: dots.get(from)!, to: dots.get(to)! }));
  return all.filter(({ text }) => text);
}

/** Write names beside their dots and relations on their lines, where they cover nothing. Return the ids of written names. */
export function writeWords(context: CanvasRenderingContext2D, dots: readonly Dot[], lines: readonly Line[], font: string, colours: Colours): Set<string> {
  const room = { left: 0, top: 0, width: context.canvas.clientWidth, height: context.canvas.clientHeight };
  const circles = dots.filter(({ isForced }) => isForced).map(({ x, y, radius }) => makeBox(x - radius, y - radius, 2 * radius, 2 * radius));
  const names = placeNames(context, dots, circles, room, font, colours.ink);
  const relations: Placed[] = [];
  for (const line of lines) {
    const isFine = (box: Box) => isInside(box, room) && isFree(box, circles) && isFree(box, [...names, ...relations], APART);
    const placed = placeRelation(context, line, font, colours.quiet).find(isFine);
    if (placed) relations.push(placed);
  }
  for (const placed of [...relations, ...names]) write(context, placed, font, colours.paper);
  return new Set(names.map(({ id }) => id));
}

/** Write a name beside its dot, whatever it covers. */
export function writeName(context: CanvasRenderingContext2D, dot: Dot, font: string, colours: Colours): void {
  const room = { left: 0, top: -NAME, width: context.canvas.clientWidth, height: context.canvas.clientHeight + 2 * NAME };
  const sides = listSides(context, dot, room, font, colours.ink);
  write(context, sides.find((side) => isInside(side, room)) ?? sides[0]!, font, colours.paper);
}

function placeNames(context: CanvasRenderingContext2D, dots: readonly Dot[], circles: readonly Box[], room: Box, font: string, colour: string): Placed[] {
  const placed: Placed[] = [];
  const cells = new Set<string>();
  for (const dot of [...dots].sort((one, other) => other.radius - one.radius)) {
    const cell = `${Math.round(dot.x / CELL.width)} ${Math.round(dot.y / CELL.height)}`;
    if (!isInside(makeBox(dot.x, dot.y, 0, 0), room) || (!dot.isForced && cells.has(cell))) continue;
    const free = listSides(context, dot, room, font, colour).filter((side) => isInside(side, room) && isFree(side, placed, APART));
    const side = free.find((each) => isFree(each, circles)) ?? free[0];
    if (!side) continue;
    placed.push(side);
    cells.add(cell);
  }
  return placed;
}

/** Return where a name may stand: right, left, below and above its dot. The last two give way to the edge of the drawing. */
function listSides(context: CanvasRenderingContext2D, { id, text, x, y, radius }: Dot, room: Box, font: string, colour: string): Placed[] {
  const { width, height } = measure(context, [text], NAME, font);
  const middle = Math.max(Math.min(x - width / 2, room.left + room.width - width - HALO), room.left + HALO);
  const corners = [
    [x + radius + GAP, y - height / 2],
    [x - radius - GAP - width, y - height / 2],
    [middle, y + radius + GAP],
    [middle, y - radius - GAP - height],
  ] as const;
  return corners.map(([left, top]) => ({ id, left, top, width, height, lines: [text], size: NAME, colour }));
}

/** Return where a relation may stand on its line. */
function placeRelation(context: CanvasRenderingContext2D, { text, from, to }: Line, font: string, colour: string): Placed[] {
  const lines = wrap(text);
  const { width, height } = measure(context, lines, RELATION, font);
  return PLACES.map((part) => {
    const [x, y] = [from.x + part * (to.x - from.x), from.y + part * (to.y - from.y)];
    return { id: "", left: x - width / 2, top: y - height / 2, width, height, lines, size: RELATION, colour };
  });
}

/** Break a relation in two at the space nearest to its middle if it is long, and leave out what does not fit. */
function wrap(text: string): string[] {
  const fit = text.length > 2 * LINE_LENGTH ? `${text.slice(0, 2 * LINE_LENGTH).replace(/[\s·]+\S*$/, "")} …` : text;
  if (fit.length <= LINE_LENGTH) return [fit];
  const spaces = [...fit.matchAll(/ /g)].map(({ index }) => index);
  const middle = fit.length / 2;
  const [best] = spaces.sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle));
  return best === undefined ? [fit] : [fit.slice(0, best), fit.slice(best + 1)];
}

function measure(context: CanvasRenderingContext2D, lines: string[], size: number, font: string): { width: number; height: number } {
  context.font = `${size}px ${font}`;
  return { width: Math.max(...lines.map((line) => context.measureText(line).width)), height: lines.length * size * LINE_HEIGHT };
}

/** Write lines with the colour of the paper around them. */
function write(context: CanvasRenderingContext2D, { left, top, width, lines, size, colour }: Placed, font: string, paper: string): void {
  context.font = `${size}px ${font}`;
  context.textBaseline = "middle";
  context.textAlign = "center";
  context.lineJoin = "round";
  context.lineWidth = HALO;
  context.strokeStyle = paper;
  context.fillStyle = colour;
  const places = lines.map((line, index) => [line, left + width / 2, top + (index + 0.5) * size * LINE_HEIGHT] as const);
  for (const [line, x, y] of places) context.strokeText(line, x, y);
  for (const [line, x, y] of places) context.fillText(line, x, y);
}

function makeBox(left: number, top: number, width: number, height: number): Box {
  return { left, top, width, height };
}

function isInside(box: Box, room: Box): boolean {
  const isWithin = box.left >= room.left && box.left + box.width <= room.left + room.width;
  return isWithin && box.top >= room.top && box.top + box.height <= room.top + room.height;
}

function isFree(box: Box, taken: readonly Box[], apart = 0): boolean {
  return !taken.some((other) => {
    const isBeside = box.left >= other.left + other.width + apart || box.left + box.width + apart <= other.left;
    return !isBeside && box.top < other.top + other.height && box.top + box.height > other.top;
  });
}

/** Return the room around a graph in pixels: less in a narrow drawing. */
export function findMargin({ clientWidth }: HTMLElement): number {
  return Math.min(MARGIN, clientWidth / 10);
}
