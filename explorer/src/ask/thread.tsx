// The way to a passage, drawn as a thread: it leaves the question, passes a knot for each name, and ends in the
// passage. For a screen reader it is a list of sentences.

import type { Said, Stop } from "./way";

interface ThreadProps {
  stops: Stop[];
  found: string; // by which searches, if there are no stops
  rank: number;
  ranks: ReadonlyMap<string, number>; // of passages among the hits
}

export function Thread({ stops, found, rank, ranks }: ThreadProps) {
  return (
    <ol class={stops.length ? "thread" : "thread direct"} aria-label="The way to this passage">
      <li class="asked">
        <Strand isDashed />
        <Knot kind="start" />
        <span class="stop">Your question</span>
      </li>
      {stops.map((stop, index) => (
        <li key={index}>
          <Strand />
          <Knot kind="stop" />
          <span class="stop">
            <Words said={stop.said} /> <b>{stop.name}</b>
          </span>
          <Quote said={stop.said} rank={rank} ranks={ranks} />
        </li>
      ))}
      <li class="passage">
        <span class="stop">{stops.length ? "is in this passage" : found}</span>
      </li>
    </ol>
  );
}

function Words({ said }: { said: Said }) {
  return (
    <>
      {said.isBackwards && <Backwards />}
      {said.isQuote ? <q>{said.words}</q> : said.words}
    </>
  );
}

/** The sentence of the author, and where it stands. What is in the passage beside it, or is said by the relation, is not repeated. */
function Quote({ said, rank, ranks }: { said: Said; rank: number; ranks: ReadonlyMap<string, number> }) {
  const stated = ranks.get(said.passage);
  const where = stated === rank ? "stated here" : stated ? `stated in ${stated}` : "";
  return (
    <>
      {said.statement && said.statement !== said.words && stated !== rank && (
        <q class={stated ? "statement short" : "statement"}>{said.statement}</q>
      )}
      {(where || said.about) && (
        <small>
          {stated && stated !== rank ? (
            <a href={`#hit-${stated}`} onClick={(event) => showHit(event, stated)}>
              {where}
            </a>
          ) : (
            where
          )}
          {where && said.about && " · "}
          {said.about}
        </small>
      )}
    </>
  );
}

/** The mark of a relation that the author wrote from the next name to the one before. */
function Backwards() {
  return (
    <>
      <span class="hidden">the other way round: </span>
      <span aria-hidden="true" class="up">
        ↑{" "}
      </span>
    </>
  );
}

function showHit(event: Event, rank: number): void {
  event.preventDefault(); // the address bar holds the state
  document.getElementById(`hit-${rank}`)?.focus();
}

function Knot({ kind }: { kind: "start" | "stop" }) {
  return (
    <svg class={`knot ${kind}`} viewBox="0 0 14 14" aria-hidden="true">
      <circle cx="7" cy="7" r={kind === "start" ? 5 : 4.5} />
    </svg>
  );
}

/** A piece of the thread, from this knot to the next. It sways a little, as a thread does. */
function Strand({ isDashed = false }: { isDashed?: boolean }) {
  return (
    <svg class={isDashed ? "strand dashed" : "strand"} viewBox="0 0 14 100" preserveAspectRatio="none" aria-hidden="true">
      <path d="M7 0 C 12 30, 2 70, 7 100" vector-effect="non-scaling-stroke" />
    </svg>
  );
}
