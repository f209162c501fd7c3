// The share of each search in the score of a hit, as a bar and in words.

import type { Hit, Placement } from "../types";

export function nameSearch(search: string): string {
  const [first = "", ...rest] = search.split(": ");
  return [first.replaceAll("_", " "), ...rest].join(": ");
}

export function listShares(hit: Hit): Array<{ placement: Placement; part: number }> {
  const total = hit.placements.reduce((sum, { share }) => sum + Math.max(share, 0), 0);
  return hit.placements.map((placement) => ({ placement, part: total ? Math.max(placement.share, 0) / total : 0 }));
}

/** A bar as long as the score beside the best one, with a part for each search. */
export function Shares({ hit, best }: { hit: Hit; best: number }) {
  const shares = listShares(hit);
  const length = best > 0 ? Math.max(hit.score / best, 0.03) : 0;
  return (
    <div class="shares">
      <div class="track" aria-hidden="true">
        <div class="full" style={{ width: `${100 * length}%` }}>
          {shares.map(({ placement, part }, index) => (
            <i key={index} data-search={placement.search} style={{ flexGrow: part }} />
          ))}
        </div>
      </div>
      <ul aria-label={`Score ${hit.score.toFixed(3)}, by search`}>
        <li class="score">{hit.score.toFixed(3)}</li>
        {shares.map(({ placement, part }, index) => (
          <li key={index} title={describe(placement)}>
            <i data-search={placement.search} aria-hidden="true" />
            {nameSearch(placement.search)} {Math.round(100 * part)}&thinsp;%
          </li>
        ))}
      </ul>
    </div>
  );
}

function describe({ rank, score, query }: Placement): string {
  const place = rank === null ? "not among the first" : `rank ${rank}`;
  return `${place}, ${score.toFixed(4)}${query ? `, for “${query}”` : ""}`;
}
