import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import "./styles.css"; // first: what a view's own sheet says goes before it
import { App } from "./App";
import { applyTheme } from "./state/theme";

applyTheme();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
