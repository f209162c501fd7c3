// One hit: the thread that leads to it, its text with the words of the question, where it comes from, and its score.

import { useState } from "preact/hooks";

import { writePlace } from "../address";
import { type Block, splitBlocks } from "../blocks";
import { Marked } from "../marked";
import { BlockText } from "../passage";
import { clean, formatDay } from "../text";
import type { Explanation, Fact, Hit, SearchResult, Superseder } from "../types";
import { Shares } from "./shares";
import { Thread } from "./thread";
import { describeSearches, listStops } from "./way";

const LONG_TEXT = 700; // characters, from which on the text is shown in part

interface CardProps {
  hit: Hit;
  rank: number;
  best: number;
  result: SearchResult;
  terms: ReadonlySet<string>;
  facts: ReadonlyMap<string, Fact>;
  ranks: ReadonlyMap<string, number>;
  collection: string;
  user: string;
}

export function Card({ hit, rank, best, result, terms, facts, ranks, collection, user }: CardProps) {
  const stops = listStops(hit, facts);
  const names = [...stops.map((stop) => stop.name), ...result.entities.map((entity) => entity.name)];
  return (
    <article
      id={`hit-${rank}`}
      class={hit.superseded_by ? "card superseded" : "card"}
      tabIndex={-1}
      aria-labelledby={`title-${rank}`}
      data-passage={hit.passage.id}
      data-score={hit.score}
    >
      <Thread stops={stops} found={describeSearches(hit)} rank={rank} ranks={ranks} />
      <div class="body">
        <header>
          <span class="rank" aria-hidden="true">
            {rank}
          </span>
          <h2 id={`title-${rank}`}>{makeTitle(hit)}</h2>
        </header>
        <Badges hit={hit} />
        <Text blocks={listBlocks(hit)} terms={terms} names={names} />
        {hit.superseded_by && <Superseded by={hit.superseded_by} rank={ranks.get(hit.superseded_by.passage_id)} />}
        <Origin hit={hit} address={writePlace({ view: "documents", values: { collection, user, open: hit.document.id } })} />
        <Shares hit={hit} best={best} />
        {hit.explanation && (
          <details class="reasons">
            <summary>How the score adds up</summary>
            <Reasons explanation={hit.explanation} />
          </details>
        )}
      </div>
    </article>
  );
}

/** Return title and headings of a hit, else its address, else its first words. */
export function makeTitle({ passage, document }: Hit): string {
  const title = passage.title || document.title;
  const headings = passage.headings.filter((heading) => heading !== title);
  const named = [title, ...headings].filter(Boolean).join(" › ");
  const said = [passage.speaker, passage.at && formatDay(passage.at)].filter(Boolean).join(", ");
  return clean(named || said || document.uri || passage.text.slice(0, 60));
}

/** Return the blocks of a passage without the headings at its beginning, which the title has. */
function listBlocks({ passage, document }: Hit): Block[] {
  const named = new Set([...passage.headings, passage.title, document.title].map((name) => name.trim()));
  const blocks = splitBlocks(passage.text);
  const isTitle = ({ kind, text }: Block) => kind === "heading" && named.has(text);
  const first = blocks.findIndex((block) => !isTitle(block) && block.kind !== "lines");
  const shown = blocks.filter((block, index) => index > first || !isTitle(block));
  return shown.length ? shown : blocks;
}

interface TextProps {
  blocks: Block[];
  terms: ReadonlySet<string>;
  names: string[];
}

function Text({ blocks, terms, names }: TextProps) {
  const isLong = blocks.reduce((sum, { text }) => sum + text.length, 0) > LONG_TEXT;
  const [isOpen, setOpen] = useState(!isLong);
  return (
    <>
      <div class={isOpen ? "text" : "text cut"}>
        {blocks.map((block, index) => (
          <BlockText key={index} block={block} show={(text) => <Marked text={text} terms={terms} names={names} />} />
        ))}
      </div>
      {isLong && (
        <button type="button" class="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Show less" : "Show all"}
        </button>
      )}
    </>
  );
}

function Badges({ hit }: { hit: Hit }) {
  const badges = [
    hit.superseded_by && "superseded",
    hit.is_planned && "begins later",
    hit.is_newer && "newer than a similar passage",
  ].filter(Boolean);
  if (!badges.length) return null;
  return (
    <p class="badges">
      {badges.map((badge) => (
        <span key={badge} class={badge === "superseded" ? "tag warn" : "tag"}>
          {badge}
        </span>
      ))}
    </p>
  );
}

const ENDS = { changed: "Changed", corrected: "Corrected", ended: "Ended" };

function Superseded({ by, rank }: { by: Superseder; rank: number | undefined }) {
  return (
    <p class="instead">
      {ENDS[by.kind]} on {formatDay(by.since)}
      {rank ? ` (passage ${rank})` : ""}: <q>{clean(by.text)}</q>
    </p>
  );
}

function Origin({ hit, address }: { hit: Hit; address: string }) {
  const { document, passage } = hit;
  const time = passage.at ?? document.at;
  const parts = [
    passage.speaker && `said by ${clean(passage.speaker)}`,
    time ? formatDay(time) : `added ${formatDay(document.recorded_at)}`,
    ...hit.when.map((days) => `speaks of ${clean(days.words)}`),
    document.source.replaceAll("_", " "),
    document.user && `of ${clean(document.user)}`,
    document.labels.length > 0 && `for ${document.labels.map(clean).join(", ")}`,
    hit.also_in.length > 0 && `also in ${hit.also_in.map((other) => clean(other.title || other.uri)).join(", ")}`,
  ].filter(Boolean);
  return (
    <p class="origin">
      <a class="uri" href={address}>
        {clean(document.uri || document.title || "the document")}
      </a>
      {parts.map((part, index) => (
        <span key={index}>{part}</span>
      ))}
    </p>
  );
}

function Reasons({ explanation }: { explanation: Explanation }) {
  return (
    <ul>
      <li>
        {explanation.value !== null && <b>{explanation.value.toFixed(4)}</b>} {clean(explanation.description)}
        {explanation.details.map((detail, index) => (
          <Reasons key={index} explanation={detail} />
        ))}
      </li>
    </ul>
  );
}
