// Add files by drag and drop, or by choosing them, and follow the jobs that read them.

import { useState } from "preact/hooks";

import { explain, followJob, upload } from "../service";
import { clean, count } from "../text";
import type { Job } from "../types";

interface Sent {
  name: string;
  job?: Job;
  problem?: string;
}

export function Uploads({ collection, onAdded }: { collection: string; onAdded: () => void }) {
  const [sent, setSent] = useState<Sent[]>([]);
  const [isOver, setOver] = useState(false);
  const send = async (file: File) => {
    const change = (news: Omit<Sent, "name">) =>
      setSent((all) => [...all.filter(({ name }) => name !== file.name), { name: file.name, ...news }]);
    change({});
    try {
      const job = await upload(collection, file);
      change({ job });
      await followJob(collection, job.id, (now) => change({ job: now }));
      onAdded();
    } catch (error) {
      change({ problem: explain(error) });
    }
  };
  const sendAll = async (files: Iterable<File>) => {
    for (const file of files) await send(file);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void sendAll(event.dataTransfer?.files ?? []);
  };
  const allow = (event: DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  return (
    <section class="uploads" aria-label="Add files">
      <label class={isOver ? "drop over" : "drop"} onDragOver={allow} onDragLeave={() => setOver(false)} onDrop={drop}>
        <span>
          Drop files here, or <span class="choose">choose files</span>
        </span>
        <input
          type="file"
          multiple
          onChange={(event) => void sendAll([...((event.currentTarget as HTMLInputElement).files ?? [])])}
        />
      </label>
      <ul role="status">
        {sent.map((each) => (
          <li key={each.name}>
            <b>{clean(each.name)}</b> <span class={each.problem || each.job?.problem ? "problem" : "quiet"}>{describe(each)}</span>
            {each.job && !each.job.ended_at && <progress aria-label={`Reading ${each.name}`} {...measure(each.job)} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function measure({ progress }: Job): { value?: number; max?: number } {
  const { bytes = 0, of_bytes: all = 0 } = progress;
  return all > 0 ? { value: bytes, max: all } : {};
}

function describe({ job, problem }: Sent): string {
  if (problem) return problem;
  if (!job) return "sending";
  if (job.problem) return clean(job.problem);
  if (!job.result) return job.state;
  if (!("unchanged" in job.result)) return job.state; // not a job that adds files
  const skipped = job.result.skipped.map(({ reason }) => clean(reason)).join("; ");
  const added = `${count(job.result.documents, "document")}, ${count(job.result.facts, "fact")}`;
  return skipped ? `${added}; skipped: ${skipped}` : added;
}
