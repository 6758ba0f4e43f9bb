/** Light, dark, or what the computer is set to. Kept on this computer. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const KEY = "boa-theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const listeners = new Set<() => void>();

function stored(): Theme {
  const found = localStorage.getItem(KEY) as Theme | null;
  return found && THEMES.includes(found) ? found : "system";
}

export function applyTheme(theme: Theme = stored()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme(theme);
  for (const listener of listeners) listener();
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, stored);
}

export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
}
