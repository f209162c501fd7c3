// Draw a neighbourhood. The list beside it says the same to those who cannot see it.

import Graph from "graphology";
import { useEffect, useRef } from "preact/hooks";

import type { Renderer } from "./label";
import type { LayoutTask, Places } from "./layout";
import { type Neighbourhood, holds, nameRelation } from "./model";
import { drawPlainly } from "./plain";
import { drawByWebGL, hasWebGL } from "./webgl";

const FEW = 60; // names, up to which every label is shown

interface DrawingProps {
  found: Neighbourhood;
  day: string;
  onChoose: (name: string) => void;
}

interface Drawn {
  graph: Graph;
  renderer: Renderer;
}

export function Drawing({ found, day, onChoose }: DrawingProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<Drawn | null>(null);
  const places = useRef<Places>({});
  useEffect(() => {
    if (!place.current) return;
    const graph = buildGraph(found, places.current);
    const choose = (id: string) => {
      const chosen = found.nodes.get(id);
      if (chosen && !chosen.isValue) onChoose(chosen.name);
    };
    const font = getComputedStyle(document.documentElement).getPropertyValue("--sans");
    const renderer = (hasWebGL() ? drawByWebGL : drawPlainly)(graph, place.current, font, choose);
    drawn.current = { graph, renderer };
    const keep = (news: Places) => {
      places.current = news;
      renderer.wait(() => graph.updateEachNodeAttributes((id, attributes) => ({ ...attributes, ...news[id] })));
    };
    const settle = () => requestAnimationFrame(() => place.current?.setAttribute("data-settled", "")); // when it is drawn
    const worker = startLayout(graph, keep, settle);
    const stopWatching = watchTheme(() => paint(graph, renderer, found, day));
    paint(graph, renderer, found, day);
    return () => {
      stopWatching();
      worker.terminate();
      renderer.stop();
      drawn.current = null;
    };
  }, [found]);
  useEffect(() => {
    if (drawn.current) paint(drawn.current.graph, drawn.current.renderer, found, day);
  }, [day]);
  return <div class="canvas" ref={place} aria-hidden="true" />;
}

function buildGraph({ nodes, edges }: Neighbourhood, known: Places): Graph {
  const graph = new Graph({ multi: true });
  let index = 0;
  for (const { id, name, isStart, isValue } of nodes.values()) {
    const angle = 2.4 * index; // a spiral, so that equal graphs look equal
    const first = { x: Math.sqrt(index) * Math.cos(angle), y: Math.sqrt(index) * Math.sin(angle) };
    index += 1;
    const size = isStart ? 11 : isValue ? 4 : 7;
    graph.addNode(id, { ...(known[id] ?? first), label: name, size, forceLabel: nodes.size <= FEW });
  }
  const relations = Map.groupBy(edges.values(), ({ from, to }) => [from, to].sort().join(" "));
  for (const [first, ...others] of relations.values()) {
    const label = [...new Set([first!, ...others].map(({ fact }) => nameRelation(fact)))].join("\u00a0· "); // a line begins with no dot
    graph.addEdgeWithKey(first!.id, first!.from, first!.to, { label, size: 1.5 }); // one label for all between two names
    for (const { id, from, to } of others) graph.addEdgeWithKey(id, from, to, { size: 1.5 });
  }
  return graph;
}

/** Place the names in a worker, which sends places until they have settled. */
function startLayout(graph: Graph, keep: (places: Places) => void, settle: () => void): Worker {
  const worker = new Worker(new URL("./layout.ts", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }: MessageEvent<{ places: Places; isLast: boolean }>) => {
    keep(data.places);
    if (!data.isLast) return;
    worker.terminate();
    settle();
  };
  const nodes = graph.mapNodes((id, { x, y }) => ({ id, x: x as number, y: y as number }));
  const edges = graph.mapEdges((_, __, from, to): [string, string] => [from, to]);
  worker.postMessage({ nodes, edges } satisfies LayoutTask);
  return worker;
}

/** Colour names and facts: those that did not hold on the day are faint. */
function paint(graph: Graph, renderer: Renderer, found: Neighbourhood, day: string): void {
  const [ink, thread, line, quiet] = [readColour("--ink"), readColour("--thread"), readColour("--line"), readColour("--quiet")];
  const held = new Set<string>();
  for (const { id, from, to, fact } of found.edges.values()) {
    const isHeld = holds(fact, day);
    if (isHeld) held.add(from).add(to);
    graph.mergeEdgeAttributes(id, { color: isHeld ? quiet : line });
  }
  for (const { id, isStart, isValue } of found.nodes.values()) {
    const color = isStart ? thread : !held.has(id) ? line : isValue ? quiet : ink;
    graph.mergeNodeAttributes(id, { color });
  }
  renderer.paint({ ink, quiet, paper: readColour("--card") });
}

/** Return a colour of the page as numbers, which WebGL needs. */
function readColour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function watchTheme(change: () => void): () => void {
  const observer = new MutationObserver(change);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", change);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", change);
  };
}
