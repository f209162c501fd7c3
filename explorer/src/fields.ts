// The fields of a form show what the address says, and keep the focus while it changes.

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Return a reference for a form whose fields get the values of the address at each visit. */
export function useFields(values: Record<string, string>, visit: number): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    for (const field of form.current?.elements ?? []) fill(field, values);
  }, [visit]);
  return form;
}

function fill(field: Element, values: Record<string, string>): void {
  if (field instanceof HTMLInputElement) field.value = values[field.name] ?? "";
  if (field instanceof HTMLSelectElement) field.value = values[field.name] || (field.options[0]?.value ?? "");
}

/** Return the values of a form that was submitted, and stay on the page. */
export function readFields(event: SubmitEvent): Record<string, string> {
  event.preventDefault();
  const data = new FormData(event.currentTarget as HTMLFormElement);
  return Object.fromEntries([...data].map(([name, value]) => [name, String(value).trim()]));
}
