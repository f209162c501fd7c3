// The question and its controls. Everything that is chosen goes into the address.

import { useEffect, useRef } from "preact/hooks";

import { go } from "../address";
import { readFields, useFields } from "../fields";
import { FILTERS, METHODS } from "./question";

interface FormProps {
  collection: string;
  values: Record<string, string>;
  visit: number;
}

export function QuestionForm({ collection, values, visit }: FormProps) {
  const field = useRef<HTMLInputElement>(null);
  const form = useFields(values, visit);
  useEffect(() => focusOnSlash(field), []);
  const submit = (event: SubmitEvent) => go({ view: "ask", values: { collection, ...readFields(event) } });
  const chosen = FILTERS.filter((name) => values[name]);
  return (
    <form ref={form} class="question" role="search" onSubmit={submit}>
      <label class="hidden" for="q">
        Question
      </label>
      <div class="line">
        <input
          ref={field}
          id="q"
          name="q"
          type="search"
          placeholder="Ask a question"
          autocomplete="off"
          enterkeyhint="search"
          maxLength={10_000}
        />
        <button type="submit">Ask</button>
      </div>
      <details class="controls" open={chosen.length > 0}>
        <summary>Method, dates, labels{chosen.length > 0 && ` (${chosen.length} set)`}</summary>
        <div class="fields">
          <label>
            Method
            <select name="method">
              {METHODS.map(([name, title]) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          </label>
          <DayField name="as_of" title="As of" />
          <DayField name="since" title="Since" />
          <DayField name="until" title="Until" />
          <TextField name="labels" title="Labels" hint="a, b" />
          <TextField name="user" title="User" hint="name" />
          <TextField name="top_k" title="Hits" hint="10" pattern="[0-9]{1,3}" />
        </div>
      </details>
    </form>
  );
}

interface FieldProps {
  name: string;
  title: string;
}

function DayField({ name, title }: FieldProps) {
  return (
    <label>
      {title}
      <input type="date" name={name} />
    </label>
  );
}

function TextField({ name, title, hint, pattern }: FieldProps & { hint: string; pattern?: string }) {
  return (
    <label>
      {title}
      <input
        name={name}
        placeholder={hint}
        autocomplete="off"
        {...(pattern ? { pattern, inputMode: "numeric" as const } : {})}
      />
    </label>
  );
}

/** Let the key `/` lead to the question from everywhere but other fields. */
function focusOnSlash(field: { current: HTMLInputElement | null }): () => void {
  const listen = (event: KeyboardEvent) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    field.current?.select();
  };
  addEventListener("keydown", listen);
  return () => removeEventListener("keydown", listen);
}
