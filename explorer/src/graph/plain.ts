// Draw a graph on a plain canvas, where the browser has no WebGL: it can be dragged, zoomed by wheel, and clicked.

import type Graph from "graphology";

import { type Colours, type Dot, type Renderer, TOLERANCE, findMargin, listLines, writeWords } from "./label";

interface Point {
  x: number;
  y: number;
}

interface Shown extends Point {
  id: string;
  label: string;
  size: number;
  color: string;
  forceLabel: boolean;
}

interface View {
  zoom: number;
  offset: Point; // of the drag, in pixels
}

export function drawPlainly(graph: Graph, place: HTMLElement, font: string, choose: (id: string) => void): Renderer {
  const canvas = place.appendChild(document.createElement("canvas"));
  const view: View = { zoom: 1, offset: { x: 0, y: 0 } };
  let colours: Colours = { ink: "", quiet: "", paper: "" };
  let shown = new Map<string, Shown>();
  let frame = 0;
  const draw = () => {
    frame = 0;
    const context = clear(canvas, place);
    shown = findPlaces(graph, place, view);
    drawLines(context, graph, shown);
    drawDots(context, [...shown.values()]);
    const dots = new Map([...shown].map(([id, each]) => [id, makeDot(each)]));
    writeWords(context, [...dots.values()], listLines(graph, dots), font, colours);
  };
  const schedule = () => void (frame ||= requestAnimationFrame(draw));
  for (const event of ["eachNodeAttributesUpdated", "nodeAttributesUpdated", "edgeAttributesUpdated"] as const) graph.on(event, schedule);
  const stop = listen(canvas, view, schedule, (point) => {
    const near = [...shown.values()].filter(({ x, y, size }) => Math.hypot(x - point.x, y - point.y) <= size + TOLERANCE);
    if (near[0]) choose(near[0].id);
  });
  window.addEventListener("resize", schedule, { signal: stop.signal });
  return {
    paint(news) {
      colours = news;
      schedule();
    },
    wait: (action) => action(),
    stop() {
      stop.abort();
      cancelAnimationFrame(frame);
      graph.removeAllListeners();
      canvas.remove();
    },
  };
}

function clear(canvas: HTMLCanvasElement, { clientWidth, clientHeight }: HTMLElement): CanvasRenderingContext2D {
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [clientWidth * ratio, clientHeight * ratio];
  const context = canvas.getContext("2d")!;
  context.scale(ratio, ratio);
  return context;
}

/** Return where each name is drawn: the graph fills the place, then it is zoomed and moved. */
function findPlaces(graph: Graph, place: HTMLElement, { zoom, offset }: View): Map<string, Shown> {
  const all = graph.mapNodes((id, attributes) => ({ ...attributes, id }) as Shown);
  const [left, right] = findRange(all.map(({ x }) => x));
  const [bottom, top] = findRange(all.map(({ y }) => y));
  const margin = findMargin(place);
  const room = (pixels: number) => Math.max(pixels - 2 * margin, margin);
  const fit = Math.min(room(place.clientWidth) / (right - left || 1), room(place.clientHeight) / (top - bottom || 1));
  const put = (each: Shown): Shown => ({
    ...each,
    x: place.clientWidth / 2 + offset.x + zoom * fit * (each.x - (left + right) / 2),
    y: place.clientHeight / 2 + offset.y - zoom * fit * (each.y - (top + bottom) / 2),
  });
  return new Map(all.map((each) => [each.id, put(each)]));
}

function findRange(numbers: number[]): [number, number] {
  return numbers.reduce(([least, most], each) => [Math.min(least, each), Math.max(most, each)], [Infinity, -Infinity]);
}

function drawLines(context: CanvasRenderingContext2D, graph: Graph, shown: Map<string, Shown>): void {
  context.lineWidth = 1.5;
  graph.forEachEdge((_, { color }, from, to) => {
    context.strokeStyle = context.fillStyle = String(color);
    drawArrow(context, shown.get(from)!, shown.get(to)!);
  });
}

function drawArrow(context: CanvasRenderingContext2D, start: Point, end: Shown): void {
  const angle = Math.atan2(end.y - start.y, end.x - start.x);
  const away = (pixels: number, turn: number): [number, number] => [
    end.x - end.size * Math.cos(angle) - pixels * Math.cos(angle + turn),
    end.y - end.size * Math.sin(angle) - pixels * Math.sin(angle + turn),
  ];
  context.beginPath();
  context.moveTo(start.x, start.y);
  context.lineTo(...away(4, 0));
  context.stroke();
  context.beginPath();
  context.moveTo(...away(0, 0));
  context.lineTo(...away(8, 0.35));
  context.lineTo(...away(8, -0.35));
  context.fill();
}

function drawDots(context: CanvasRenderingContext2D, names: readonly Shown[]): void {
  for (const { x, y, size, color } of names) {
    context.fillStyle = color;
    context.beginPath();
    context.arc(x, y, size, 0, 2 * Math.PI);
    context.fill();
  }
}

function makeDot({ id, label: text, x, y, size: radius, forceLabel: isForced }: Shown): Dot {
  return { id, text, x, y, radius, isForced };
}

/** Move and zoom the view by mouse, touch and wheel, until it is aborted. */
function listen(canvas: HTMLCanvasElement, view: View, schedule: () => void, click: (point: Point) => void): AbortController {
  const stop = new AbortController();
  const { signal } = stop;
  let from: Point | null = null;
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    [from, moved] = [event, 0];
    canvas.setPointerCapture(event.pointerId);
  }, { signal });
  canvas.addEventListener("pointermove", ({ x, y }) => {
    if (!from) return;
    moved += Math.hypot(x - from.x, y - from.y);
    view.offset = { x: view.offset.x + x - from.x, y: view.offset.y + y - from.y };
    from = { x, y };
    schedule();
  }, { signal });
  canvas.addEventListener("pointerup", ({ offsetX, offsetY }) => {
    from = null;
    if (moved <= TOLERANCE) click({ x: offsetX, y: offsetY });
  }, { signal });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.min(Math.max(view.zoom * (event.deltaY < 0 ? 1.25 : 0.8), 0.1), 20) / view.zoom;
    const [x, y] = [event.offsetX - canvas.clientWidth / 2, event.offsetY - canvas.clientHeight / 2];
    view.zoom *= factor;
    view.offset = { x: x - factor * (x - view.offset.x), y: y - factor * (y - view.offset.y) };
    schedule();
  }, { signal, passive: false });
  return stop;
}
