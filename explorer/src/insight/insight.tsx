// The Insight view: how much a collection has, how it grew, and how its searches went, as far as the key may see it.

import { useEffect, useState } from "preact/hooks";

import { explain, service } from "../service";
import type { ViewProps } from "../shell";
import { clean, count, formatDay } from "../text";
import type { Insight } from "../types";
import { type Measured, type Part, findQuantile, formatSeconds, listDecisions, readReport, splitGrowth } from "./figures";
import { Decisions, Growth, Latencies, Plot, Scores, type Size, Sizes } from "./plots";

export function InsightView({ collection, visit }: ViewProps) {
  const [insight, setInsight] = useState<Insight | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = "Insight · Waylore";
    let isLeft = false;
    service.getInsight({ path: { collection } }).then(
      (news) => isLeft || setInsight(news),
      (error: Error) => isLeft || setProblem(explain(error)),
    );
    return () => void (isLeft = true);
  }, [collection, visit]);
  return (
    <div class="insight">
      <h1 class="hidden">Insight</h1>
      <p class="problem" role="alert">
        {problem}
      </p>
      {insight && (
        <div class="plots">
          <SizePlot insight={insight} collection={collection} />
          <GrowthPlot insight={insight} />
          {insight.gate && <GatePlot gate={insight.gate} since={insight.since} />}
          {insight.stages && <LatencyPlot insight={insight} />}
          <ReportPlot />
        </div>
      )}
    </div>
  );
}

function SizePlot({ insight: { statistics, growth }, collection }: { insight: Insight; collection: string }) {
  const add = (name: "documents" | "passages") => growth.reduce((sum, day) => sum + day[name], 0);
  const sizes: Size[] = statistics
    ? [
        { name: "documents", number: statistics.documents },
        { name: "passages", number: statistics.passages },
        { name: "names", number: statistics.entities },
        { name: "facts", number: statistics.facts },
      ]
    : [
        { name: "documents", number: add("documents") },
        { name: "passages", number: add("passages") },
      ];
  const model = statistics?.model ? `Vectors are of ${clean(statistics.model)}.` : "Only words are searched.";
  return (
    <Plot title="Size" says={statistics ? `All of the collection ${collection}. ${model}` : `What you may see of the collection ${collection}.`}>
      <Sizes sizes={sizes} />
    </Plot>
  );
}

function GrowthPlot({ insight: { growth } }: { insight: Insight }) {
  const parts = splitGrowth(growth);
  const last = parts.at(-1);
  if (!last) return <Plot title="Growth" says="Nothing that you may see was written yet." />;
  const sum = `${count(last.total, "document")} since ${formatDay(parts[0]!.first)}.`;
  const most = Math.max(...parts.map(({ documents }) => documents));
  const says = parts.length > 1 ? `${sum} A bar shows those of ${nameLength(parts)}, at most ${most}; the line all so far.` : sum;
  return (
    <Plot title="Growth" says={says} label={says}>
      <Growth parts={parts} />
    </Plot>
  );
}

function GatePlot({ gate, since }: { gate: Record<string, number>; since: string }) {
  const decisions = listDecisions(gate);
  const all = decisions.reduce((sum, { searches }) => sum + searches, 0);
  const begun = new Date(since).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  const says = `${count(all, "question")} since ${begun}, when this process began.`;
  return (
    <Plot title="Did questions use the graph?" says={says}>
      {all > 0 && <Decisions decisions={decisions} />}
    </Plot>
  );
}

function LatencyPlot({ insight: { stages, bounds } }: { insight: Insight }) {
  const shown = (stages ?? []).filter(({ counts }) => counts.some(Boolean));
  if (!shown.length) return <Plot title="Time of each stage" says="No question was asked since the process began." />;
  const slowest = shown.reduce((one, other) =>
    findQuantile(other, bounds, 0.5) > findQuantile(one, bounds, 0.5) ? other : one,
  );
  const time = formatSeconds(findQuantile(slowest, bounds, 0.95));
  const says = `The stronger the colour, the more questions. The slowest stage is “${slowest.stage.replaceAll("_", " ")}”: for 95 % of them it took up to ${time}.`;
  return (
    <Plot title="Time of each stage" says={says} isTall>
      <Latencies stages={shown} bounds={bounds} />
    </Plot>
  );
}

function nameLength([first]: Part[]): string {
  const days = 1 + (Date.parse(first!.last) - Date.parse(first!.first)) / 86_400_000;
  return days > 1 ? count(days, "day") : "a day";
}

/** A report of `waylore eval`, which the user chooses; the file stays in the browser. */
function ReportPlot() {
  const [measured, setMeasured] = useState<Measured[]>([]);
  const [problem, setProblem] = useState("");
  const [isOver, setOver] = useState(false);
  const allow = (event: DragEvent) => {
    event.preventDefault(); // the browser would open the file in the place of the page
    setOver(true);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void read(event.dataTransfer?.files[0]);
  };
  const read = async (file: File | undefined) => {
    if (!file) return;
    try {
      setMeasured(readReport(await file.text()));
      setProblem("");
    } catch (error) {
      setProblem(explain(error));
    }
  };
  return (
    <Plot
      title="Evaluation"
      says={
        measured.length ? (
          "Share of the passages that a question needs among the first five, with its interval of 95 %."
        ) : (
          <>
            Measure methods on your own questions: <code>waylore eval FOLDER --questions FILE --json report.json</code>.
            The file stays in this browser.
          </>
        )
      }
    >
      <Scores measured={measured} />
      <label class={isOver ? "drop over" : "drop"} onDragOver={allow} onDragLeave={() => setOver(false)} onDrop={drop}>
        <span class="choose">{measured.length ? "Choose another report" : "Choose a report"}</span>
        <input
          type="file"
          accept=".json,application/json"
          onChange={(event) => void read((event.currentTarget as HTMLInputElement).files?.[0])}
        />
      </label>
      <p class="problem" role="alert">
        {problem}
      </p>
    </Plot>
  );
}
