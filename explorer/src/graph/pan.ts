// Drag a drawing of sigma with the mouse as one picture. Sigma draws seven layers again for every frame, three of them by
// WebGL, which a machine without a graphics card does not keep up with, so it would have to leave out lines and labels. Here
// they are drawn when the drag begins, rests or has gone far, and in between the browser only moves the result.

import type Sigma from "sigma";

import { TOLERANCE } from "./label";

const LAYERS = ["edges", "edgeLabels", "nodes", "labels"];
const FAR = 0.2; // of the width or height: what comes into sight has to be drawn
const REST = 400; // milliseconds, after which it is drawn too: longer than a frame of a slow machine

interface Point {
  x: number;
  y: number;
}

export interface Pan {
  /** Run this now, or at the end of the drag if one goes on; only the last of several is run. */
  wait(action: () => void): void;
  stop(): void;
}

/** Let the mouse drag the drawing, in the place of sigma's own way to do so. */
export function startPan(sigma: Sigma, place: HTMLElement): Pan {
  const picture = document.createElement("canvas");
  picture.className = "picture";
  let from: Point | null = null; // where the mouse was when the picture was taken
  let isDragged = false;
  let waiting: (() => void) | null = null;
  let resting = 0;
  const take = (at: Point) => {
    if (from && isDragged) moveCamera(sigma, at.x - from.x, at.y - from.y);
    from = at;
    takePicture(sigma, picture);
    place.append(picture);
  };
  const press = (event: MouseEvent) => {
    isDragged = false;
    if (event.button === 0) from = readPoint(event);
  };
  const move = (event: MouseEvent) => {
    if (!from) return;
    event.stopPropagation(); // sigma would draw everything, and look for a name below the mouse
    const at = readPoint(event);
    const [x, y] = [at.x - from.x, at.y - from.y];
    if (!isDragged && Math.hypot(x, y) < TOLERANCE) return;
    if (!isDragged) take(from);
    isDragged = true;
    picture.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`; // whole pixels stay sharp
    clearTimeout(resting);
    if (Math.abs(x) > FAR * place.clientWidth || Math.abs(y) > FAR * place.clientHeight) take(at);
    else resting = window.setTimeout(() => take(at), REST);
  };
  const release = (event: MouseEvent) => {
    clearTimeout(resting);
    if (from && isDragged) {
      const at = readPoint(event);
      moveCamera(sigma, at.x - from.x, at.y - from.y);
      draw(sigma);
      picture.remove();
    }
    from = null;
    waiting?.();
    waiting = null;
  };
  const click = (event: MouseEvent) => isDragged && event.stopPropagation(); // the end of a drag chooses no name
  const stop = new AbortController();
  const options = { capture: true, signal: stop.signal };
  place.addEventListener("mousedown", press, options);
  place.addEventListener("click", click, options);
  window.addEventListener("mousemove", move, options);
  window.addEventListener("mouseup", release, options);
  return {
    wait: (action) => (from && isDragged ? (waiting = action) : action()),
    stop() {
      clearTimeout(resting);
      stop.abort();
    },
  };
}

/** Draw at once what the camera sees, without reading the graph again. */
function draw(sigma: Sigma): void {
  sigma.refresh({ partialGraph: {}, skipIndexation: true, schedule: false });
}

function takePicture(sigma: Sigma, picture: HTMLCanvasElement): void {
  draw(sigma); // WebGL forgets what it drew after each frame
  const layers = sigma.getCanvases();
  const { width, height } = layers["nodes"]!;
  Object.assign(picture, { width, height });
  const context = picture.getContext("2d", { alpha: false })!; // nothing shows through, so nothing below it is drawn
  context.fillStyle = getComputedStyle(sigma.getContainer()).backgroundColor;
  context.fillRect(0, 0, width, height);
  for (const name of LAYERS) context.drawImage(layers[name]!, 0, 0);
  picture.style.transform = "none";
}

function moveCamera(sigma: Sigma, x: number, y: number): void {
  const [before, after] = [sigma.viewportToFramedGraph({ x: 0, y: 0 }), sigma.viewportToFramedGraph({ x, y })];
  const camera = sigma.getCamera();
  const state = camera.getState();
  camera.setState({ x: state.x + before.x - after.x, y: state.y + before.y - after.y });
}

function readPoint({ clientX, clientY }: MouseEvent): Point {
  return { x: clientX, y: clientY };
}
