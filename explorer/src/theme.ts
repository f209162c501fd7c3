// Light or dark: as the system has it, until the user chooses.

const KEY = "waylore.theme";
export type Theme = "light" | "dark";

export function getTheme(): Theme {
  const chosen = localStorage.getItem(KEY);
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme();
}

/** Set the chosen theme on the page. Without a choice the page follows the system. */
export function applyTheme(): void {
  const chosen = localStorage.getItem(KEY);
  if (chosen) document.documentElement.dataset["theme"] = chosen;
}
