// A worker that places names: a few steps at a time, and it sends the places after each, until it has settled.

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";

export interface LayoutTask {
  nodes: Array<{ id: string; x: number; y: number }>;
  edges: Array<[string, string]>;
}

export type Places = Record<string, { x: number; y: number }>;

const ROUNDS = 12;
const STEPS = 25; // of a round

self.onmessage = ({ data }: MessageEvent<LayoutTask>) => {
  const graph = new Graph({ multi: true });
  for (const { id, x, y } of data.nodes) graph.addNode(id, { x, y });
  for (const [from, to] of data.edges) graph.addEdge(from, to);
  const settings = { ...forceAtlas2.inferSettings(graph), adjustSizes: false, strongGravityMode: true, gravity: 0.08 };
  for (let round = 0; round < ROUNDS; round++) {
    forceAtlas2.assign(graph, { iterations: STEPS, settings });
    const places: Places = {};
    graph.forEachNode((id, { x, y }) => (places[id] = { x: x as number, y: y as number }));
    postMessage({ places, isLast: round === ROUNDS - 1 });
  }
};
