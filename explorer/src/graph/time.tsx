// A slider over the time in which the facts began and ended: what held on a day.

import { formatDay } from "../text";

const DAY = 86_400_000; // milliseconds

interface TimeProps {
  period: [string, string];
  day: string; // empty: all times
  onShow: (day: string) => void; // while the slider moves
  onChoose: (day: string) => void; // when it has stopped
}

/** Return a day as the address has it; empty if it is none. */
export function readDay(text = ""): string {
  return /^\d{4}-\d\d-\d\d$/.test(text) && Number.isFinite(Date.parse(text)) ? text : "";
}

export function Time({ period, day, onShow, onChoose }: TimeProps) {
  const first = toNumber(period[0]) - 1; // the day before anything began
  const last = toNumber(period[1]) + 1;
  const read = (event: Event) => toDay(Number((event.currentTarget as HTMLInputElement).value));
  return (
    <div class="time">
      <label>
        <span>{day ? `What held on ${formatDay(day)}` : "All times"}</span>
        <input
          type="range"
          min={first}
          max={last}
          value={day ? toNumber(day) : last}
          aria-valuetext={day ? formatDay(day) : "all times"}
          onInput={(event) => onShow(read(event))}
          onChange={(event) => onChoose(read(event))}
        />
      </label>
      <button type="button" class="plain" disabled={!day} onClick={() => onChoose("")}>
        All times
      </button>
    </div>
  );
}

function toNumber(day: string): number {
  return Math.round(Date.parse(`${day}T00:00:00Z`) / DAY);
}

function toDay(number: number): string {
  return new Date(number * DAY).toISOString().slice(0, 10);
}
