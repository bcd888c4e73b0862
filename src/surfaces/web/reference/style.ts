/** The reference page's own style: one file, without external fonts or images. */
export const style = `
:root {
  color-scheme: light dark;
  --page: #ffffff; --soft: #f6f7f9; --line: #e3e6eb; --text: #1b2330; --quiet: #5a6577; --accent: #3d4bd8;
  --accent-soft: #eef0ff; --code: #f1f3f7; --panel: #141a26; --panel-head: #1d2433; --panel-text: #dbe2f0;
  --get: #0a7d4f; --post: #2255d6; --put: #96590a; --patch: #7a3fc7; --delete: #c22e3c; --warn: #96590a; --bad: #b3261e;
  --key: #9ec1ff; --string: #9be3b0; --number: #ffc48a;
  --sans: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e131c; --soft: #141b27; --line: #263043; --text: #e4e9f2; --quiet: #9aa6ba; --accent: #98a6ff;
    --accent-soft: #1c2340; --code: #1b2332; --panel: #090d14; --panel-head: #131a26;
    --get: #4fce98; --post: #83abff; --put: #eab464; --patch: #c69dff; --delete: #ff8b93; --warn: #eab464; --bad: #ff9a94;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.6 var(--sans); overflow-wrap: break-word; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; text-underline-offset: 2px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code, pre { font-family: var(--mono); font-size: .86em; }
code { background: var(--code); padding: .12em .36em; border-radius: 4px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--page); padding: .5rem 1rem; z-index: 9; }

.shell { display: grid; grid-template-columns: 17.5rem minmax(0, 1fr); }
.side { position: sticky; top: 0; height: 100vh; overflow-y: auto; background: var(--soft); border-right: 1px solid var(--line); padding: 1.5rem 1rem 3rem 1.25rem; font-size: .875rem; scrollbar-width: thin; }
.brand { display: flex; align-items: center; gap: .6rem; font-weight: 650; font-size: 1.05rem; letter-spacing: -.01em; color: var(--text); margin-bottom: 1.25rem; }
.brand svg { width: 1.6rem; height: 1.6rem; color: var(--accent); flex: none; }
.brand small { font-weight: 450; color: var(--quiet); font-size: .8rem; }
nav h2 { font-size: .72rem; letter-spacing: .07em; text-transform: uppercase; color: var(--quiet); margin: 1.4rem 0 .35rem .5rem; font-weight: 650; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: flex; justify-content: space-between; align-items: baseline; gap: .5rem; padding: .22rem .5rem; border-radius: 6px; color: var(--text); line-height: 1.4; }
nav li a:hover { background: var(--accent-soft); text-decoration: none; }
.tiny { font: 650 .64rem/1 var(--mono); letter-spacing: .02em; flex: none; }
.toc-small { display: none; }

main { padding: 2.75rem clamp(1rem, 3.2vw, 3.5rem) 6rem; max-width: 86rem; }
h1 { font-size: clamp(1.9rem, 1.4rem + 1.6vw, 2.6rem); line-height: 1.15; letter-spacing: -.025em; margin: 0 0 .6rem; }
.lead { font-size: 1.1rem; color: var(--quiet); max-width: 46rem; margin: 0 0 1.75rem; }
h2 { font-size: 1.55rem; letter-spacing: -.018em; line-height: 1.25; margin: 0 0 1rem; }
h3 { font-size: 1.2rem; letter-spacing: -.01em; line-height: 1.3; margin: 0 0 .6rem; }
h4 { font-size: .78rem; letter-spacing: .06em; text-transform: uppercase; color: var(--quiet); margin: 1.75rem 0 .5rem; font-weight: 650; }
p { margin: 0 0 .8rem; max-width: 46rem; }
.group { border-top: 1px solid var(--line); padding-top: 2.75rem; margin-top: 3.25rem; }
.base { display: inline-flex; flex-wrap: wrap; gap: .2rem .7rem; align-items: baseline; border: 1px solid var(--line); background: var(--soft); border-radius: 8px; padding: .5rem .85rem; margin-bottom: 1.4rem; }
.base span { color: var(--quiet); font-size: .82rem; }
.base code { background: none; padding: 0; }

.operation { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 28.5rem); gap: 0 2.75rem; padding: 2.25rem 0; border-top: 1px solid var(--line); }
.operation:first-of-type { border-top: 0; padding-top: .5rem; }
.operation > * { min-width: 0; }
.operation h3 a, .code h3 a { color: inherit; }
.operation h3 a::after, .code h3 a::after { content: " #"; color: var(--accent); opacity: 0; font-weight: 400; }
.operation h3 a:hover::after, .code h3 a:hover::after { opacity: 1; }
.call { display: flex; flex-wrap: wrap; gap: .35rem .6rem; align-items: center; margin: 0 0 1rem; font-family: var(--mono); font-size: .88rem; }
.call code { background: none; padding: 0; font-size: 1em; }
.call i { font-style: normal; color: var(--accent); }
.badge { font: 700 .72rem/1 var(--mono); letter-spacing: .03em; padding: .32rem .5rem; border-radius: 5px; border: 1px solid currentColor; }
.get { color: var(--get); } .post { color: var(--post); } .put { color: var(--put); } .patch { color: var(--patch); } .delete { color: var(--delete); }
.access { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: .3rem 1rem; margin: 1rem 0; padding: .8rem 1rem; border-radius: 8px; background: var(--soft); border: 1px solid var(--line); font-size: .9rem; }
.access dt { color: var(--quiet); } .access dd { margin: 0; }

.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .9rem; margin: 0 0 1rem; }
caption { text-align: left; position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th { text-align: left; font-weight: 600; font-size: .78rem; color: var(--quiet); padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); }
td { padding: .5rem .9rem .5rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:last-child, th:last-child { padding-right: 0; }
td p { margin: 0; }
.field { background: none; padding: 0; font-weight: 600; overflow-wrap: normal; }
.field span { color: var(--quiet); font-weight: 400; }
.required { display: block; color: var(--warn); font-size: .72rem; font-weight: 600; white-space: nowrap; }
.type { color: var(--quiet); min-width: 6.5rem; }
.values code { white-space: nowrap; }
.either td { color: var(--quiet); font-size: .82rem; padding: .4rem .6rem; background: var(--soft); }
.quiet { color: var(--quiet); }
.status { font: 650 .78rem/1 var(--mono); color: var(--quiet); }
.codes td:first-child { white-space: nowrap; }
.codes td:nth-child(2) { width: 3.5rem; }

.filter { margin: 0 0 1rem; }
.filter label { display: block; font-weight: 600; margin-bottom: .25rem; }
.filter input { width: 100%; padding: .45rem .6rem; border: 1px solid var(--quiet); border-radius: 6px; background: var(--page); color: var(--text); font: inherit; }
.filter span { display: block; min-height: 1.4rem; color: var(--quiet); }
[hidden] { display: none !important; }
details.group { border-top: 1px solid var(--line); margin: 0; }
details.group > summary { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; justify-content: space-between; width: auto; padding: 1rem 0; color: var(--text); }
details.group > summary h2 { margin: 0 auto 0 0; }
details.group > summary::before { content: "▸"; color: var(--quiet); }
details.group[open] > summary::before { content: "▾"; }
details.group > summary span { color: var(--quiet); font-size: .875rem; white-space: nowrap; }

details { margin: .4rem 0; }
summary { cursor: pointer; color: var(--accent); font-size: .9rem; padding: .25rem 0; width: fit-content; }
summary:hover { text-decoration: underline; text-underline-offset: 2px; }

.panels { position: sticky; top: 1.5rem; align-self: start; }
.panel { background: var(--panel); color: var(--panel-text); border-radius: 10px; overflow: hidden; margin: 0 0 1rem; border: 1px solid var(--panel-head); }
.panel h4 { margin: 0; padding: .6rem 1rem; background: var(--panel-head); color: #a9b4c8; text-transform: none; letter-spacing: 0; font-size: .78rem; display: flex; justify-content: space-between; gap: 1rem; }
.panel pre { margin: 0; padding: .9rem 1rem 1.1rem; overflow: auto; max-height: 26rem; font-size: .78rem; line-height: 1.6; tab-size: 2; scrollbar-width: thin; scrollbar-color: #3a455a transparent; }
.panel b { font-weight: 400; } .panel .k { color: var(--key); } .panel .s { color: var(--string); } .panel .n { color: var(--number); }
.panel .ok { color: #7fdca4; }
.panel .note { margin: 0; padding: .6rem 1rem; border-top: 1px solid var(--panel-head); font-size: .8rem; color: #a9b4c8; }
.panel .note code { background: none; padding: 0; color: var(--panel-text); } .panel .note a { color: #a9bcff; text-decoration: underline; }
#session-jar:target { box-shadow: 0 0 0 2px var(--accent); }

.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: 1rem; margin: 1rem 0 1.5rem; }
.card { border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.1rem; background: var(--page); }
.card h3 { font-size: 1rem; margin-bottom: .3rem; } .card p { margin: 0; font-size: .9rem; color: var(--quiet); }
.card code { font-size: .82em; }

.code { padding: .95rem 1rem; margin: 0 -1rem; border-top: 1px solid var(--line); border-radius: 4px; }
.code h3 { font: 650 .95rem/1.4 var(--mono); margin: 0 0 .2rem; display: flex; gap: .8rem; align-items: baseline; flex-wrap: wrap; letter-spacing: 0; }
.code p { margin: 0; font-size: .94rem; }
.code:target { background: var(--accent-soft); box-shadow: inset 3px 0 var(--accent); }
.operation:target h3 a::after { opacity: 1; }
footer { color: var(--quiet); font-size: .85rem; border-top: 1px solid var(--line); margin-top: 3.5rem; padding-top: 1.25rem; }

@media (max-width: 78rem) {
  .operation { grid-template-columns: minmax(0, 1fr); gap: 1rem; }
  .panels { position: static; }
}
@media (max-width: 54rem) {
  .shell { display: block; }
  .side { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: .9rem 1rem; }
  .side .brand { margin-bottom: .4rem; }
  .toc-wide { display: none; }
  .toc-small { display: block; margin: 0; }
  nav li a { padding: .45rem .5rem; }
  main { padding-top: 1.75rem; }
}
@media (max-width: 40rem) {
  .stack thead { display: none; }
  .stack tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--line); }
  .stack td { display: block; border: 0; padding: .1rem 0; width: auto; }
  .stack .required { display: inline; margin-left: .4rem; } .stack .type { font-size: .84rem; }
  .stack .either td { padding: .2rem .6rem; } .stack.codes td { display: inline; padding-right: .4rem; } .stack.codes td:last-child { display: block; }
  .access { grid-template-columns: minmax(0, 1fr); gap: 0; } .access dd { margin-bottom: .4rem; }
}
@media print { .side, .panels { display: none; } .shell, .operation { display: block; } }
`;
