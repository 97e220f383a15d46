// Asks for the page again, and puts what has changed into the one that is shown: nobody loses their place,
// and a screen reader tells when the verdict changes.
"use strict";

const PAUSE = 1000;
const PATIENCE = 5000;

const connection = document.getElementById("connection");
const verdict = document.getElementById("verdict");
const lock = document.querySelector(".lock").textContent;

let answeredAt = new Date();

// A page that nobody serves any more must not go on saying who leads.
function doubt() {
  if (!connection.hidden) return;
  const [text, step] = [document.createElement("p"), document.createElement("em")];
  const leader = verdict.querySelector("[data-leader]")?.dataset.leader;
  const at = answeredAt.toISOString().slice(11, 19);
  text.className = "verdict bad";
  text.textContent = `${verdict.dataset.doubt ?? "The leader is unknown"}: no answer since ${at} UTC${leader ? `, when ${leader} led` : ""}. `;
  step.textContent = verdict.dataset.step;
  text.append(step);
  verdict.replaceChildren(text);
  document.title = `No answer · ${lock}`;
}

function show(title) {
  const answered = title !== null;
  if (answered) {
    document.title = title;
    answeredAt = new Date();
  } else {
    doubt();
  }
  connection.hidden = answered;
  document.body.classList.toggle("old", !answered);
}

async function refresh() {
  try {
    const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = next.getElementById(part.id);
      if (fresh && fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
    }
    show(next.title);
  } catch {
    show(null);
  }
  setTimeout(refresh, PAUSE);
}

setTimeout(refresh, PAUSE);
