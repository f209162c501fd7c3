// Forget a document: first what would be removed, then the receipt, and the proof that nothing is left.

import { useState } from "preact/hooks";

import { explain, forget, service } from "../service";
import { count } from "../text";
import type { Receipt } from "../types";

type Stage =
  | { name: "start" }
  | { name: "trial"; receipt: Receipt }
  | { name: "done"; receipt: Receipt; left: string[] | null };

interface ForgetProps {
  collection: string;
  id: string;
  user: string;
  onForgotten: () => void;
}

export function Forget({ collection, id, user, onForgotten }: ForgetProps) {
  const [stage, setStage] = useState<Stage>({ name: "start" });
  const [problem, setProblem] = useState("");
  const run = (work: () => Promise<void>) => void work().catch((error: Error) => setProblem(explain(error)));
  const tryOut = () =>
    run(async () => setStage({ name: "trial", receipt: await forget(collection, id, user, true) }));
  const remove = () =>
    run(async () => {
      const receipt = await forget(collection, id, user, false);
      setStage({ name: "done", receipt, left: null });
      onForgotten();
      const { left } = await service.verifyReceipt({ path: { collection }, body: receipt });
      setStage({ name: "done", receipt, left });
    });
  return (
    <section class="forget" aria-label="Forget this document">
      {stage.name === "start" && (
        <button type="button" class="plain" onClick={tryOut}>
          Forget this document…
        </button>
      )}
      {stage.name === "trial" && (
        <>
          <p>This would remove {describe(stage.receipt)}. What other documents support stays.</p>
          <button type="button" onClick={remove}>
            Forget it
          </button>{" "}
          <button type="button" class="plain" onClick={() => setStage({ name: "start" })}>
            Keep it
          </button>
        </>
      )}
      {stage.name === "done" && (
        <div role="status">
          <p>Removed {describe(stage.receipt)}.</p>
          <p>
            Receipt <code>{stage.receipt.id}</code>, kept for thirty days.
          </p>
          {stage.left && <p>{stage.left.length ? `Still stored: ${stage.left.join("; ")}` : "Checked: nothing of it is left."}</p>}
        </div>
      )}
      <p class="problem" role="alert">
        {problem}
      </p>
    </section>
  );
}

function describe({ documents, passages, entities, facts }: Receipt): string {
  const parts = [
    count(documents.length, "document"),
    count(passages.length, "passage"),
    count(facts.length, "fact"),
    count(entities.length, "name"),
  ];
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
