// A slider over the time in which the facts began and ended: what held on a day.

import { formatDay } from "../text";

const DAY = 86_400_000; // milliseconds

interface TimeProps {
  period: [string, string];
  day: string; // empty: all times
  onChange: (day: string) => void;
}

export function Time({ period, day, onChange }: TimeProps) {
  const first = toNumber(period[0]) - 1; // the day before anything began
  const last = toNumber(period[1]) + 1;
  const change = (event: Event) => onChange(toDay(Number((event.currentTarget as HTMLInputElement).value)));
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
          onInput={change}
        />
      </label>
      <button type="button" class="plain" disabled={!day} onClick={() => onChange("")}>
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
