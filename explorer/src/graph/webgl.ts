// Draw a graph with sigma, which needs WebGL.

import type Graph from "graphology";
import Sigma from "sigma";
import { type NodeHoverDrawingFunction, NodePointProgram } from "sigma/rendering";

import { type Colours, type Dot, type Renderer, findMargin, listLines, writeName, writeWords } from "./label";
import { startPan } from "./pan";

/** Return whether the browser has WebGL. Without a graphics card, Chromium has none. */
export function hasWebGL(): boolean {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("webgl2") ?? canvas.getContext("webgl");
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return context !== null;
}

export function drawByWebGL(graph: Graph, place: HTMLElement, font: string, choose: (id: string) => void): Renderer {
  let colours: Colours = { ink: "", quiet: "", paper: "" };
  let written = new Set<string>(); // names
  const hover: NodeHoverDrawingFunction = (context, { key: id, label: text, x, y, size }) => {
    if (text && !written.has(id)) writeName(context, { id, text, x, y, radius: size, isForced: true }, font, colours);
  };
  const sigma = new Sigma(graph, place, {
    nodeProgramClasses: { circle: NodePointProgram },
    defaultEdgeType: "arrow",
    defaultDrawNodeHover: hover,
    renderLabels: false, // sigma lets them cover each other
    hideEdgesOnMove: true,
    stagePadding: findMargin(place),
    allowInvalidContainer: true,
  });
  sigma.on("afterRender", () => {
    if (!isMoving(sigma)) written = writeAll(sigma, graph, font, colours);
  });
  sigma.on("clickNode", ({ node }) => choose(node));
  const pan = startPan(sigma, place);
  return {
    paint(news) {
      colours = news;
      sigma.scheduleRender();
    },
    wait: pan.wait,
    stop() {
      pan.stop();
      sigma.kill();
    },
  };
}

function writeAll(sigma: Sigma, graph: Graph, font: string, colours: Colours): Set<string> {
  const dots = new Map(graph.mapNodes((id) => [id, findDot(sigma, id)]));
  const context = sigma.getCanvases()["labels"]!.getContext("2d")!;
  return writeWords(context, [...dots.values()], listLines(graph, dots), font, colours);
}

function findDot(sigma: Sigma, id: string): Dot {
  const shown = sigma.getNodeDisplayData(id)!;
  const { x, y } = sigma.framedGraphToViewport(shown);
  return { id, text: shown.label ?? "", x, y, radius: sigma.scaleSize(shown.size), isForced: shown.forceLabel };
}

/** Return whether sigma leaves out labels, because the drawing is zoomed or moved. */
function isMoving(sigma: Sigma): boolean {
  const mouse = sigma.getMouseCaptor();
  return sigma.getCamera().isAnimated() || mouse.isMoving || mouse.draggedEvents > 0 || mouse.currentWheelDirection !== 0;
}
