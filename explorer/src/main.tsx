import { render } from "preact";

import { exchangeTicket, finishLogin } from "./session";
import { Shell } from "./shell";
import "./styles/page.css";
import "./styles/ask.css";
import "./styles/documents.css";
import "./styles/graph.css";
import "./styles/memory.css";
import "./styles/insight.css";
import { applyTheme } from "./theme";

applyTheme();
const page = document.getElementById("page");
if (page) {
  const refusal = (await exchangeTicket()) || (await finishLogin());
  render(<Shell refusal={refusal} />, page);
}
