// Draw a graph with sigma, which needs WebGL.

import type Graph from "graphology";
import Sigma from "sigma";
import { type NodeHoverDrawingFunction, NodePointProgram } from "sigma/rendering";

import { type Colours, FEW_RELATIONS, type Renderer, findMargin, writeName } from "./label";
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
  const label: NodeHoverDrawingFunction = (context, { label: text, x, y, size }, { labelSize, labelFont }) => {
    if (text) writeName(context, { text, x, y, size: labelSize, font: labelFont, colour: colours.ink }, size, colours.paper);
  };
  const sigma = new Sigma(graph, place, {
    nodeProgramClasses: { circle: NodePointProgram },
    defaultEdgeType: "arrow",
    defaultDrawNodeLabel: label,
    defaultDrawNodeHover: label,
    renderEdgeLabels: graph.order <= FEW_RELATIONS,
    hideEdgesOnMove: true,
    hideLabelsOnMove: true,
    labelFont: font,
    labelSize: 13,
    edgeLabelFont: font,
    edgeLabelSize: 11,
    labelRenderedSizeThreshold: 6,
    stagePadding: findMargin(place),
    allowInvalidContainer: true,
  });
  sigma.on("clickNode", ({ node }) => choose(node));
  const pan = startPan(sigma, place);
  return {
    paint(news) {
      colours = news;
      sigma.setSetting("labelColor", { color: news.ink });
      sigma.setSetting("edgeLabelColor", { color: news.quiet });
    },
    wait: pan.wait,
    stop() {
      pan.stop();
      sigma.kill();
    },
  };
}
