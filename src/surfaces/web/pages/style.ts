/**
 * The style of the server-rendered pages: no external asset, light and dark, from 320 px up. Text contrast is at least
 * 4.5:1 and that of controls 3:1 in both schemes (WCAG 2.2 AA).
 */
export const styleSheet = `
:root{color-scheme:light dark;--page:#f4f5f8;--card:#fff;--ink:#171b26;--soft:#525a6e;--line:#868ea3;--hair:#e0e3eb;
--accent:#2f4fd8;--on-accent:#fff;--accent-strong:#2440b4;--bad:#a3162a;--bad-soft:#fdecee;--good:#14683a}
@media (prefers-color-scheme:dark){:root{--page:#0f121a;--card:#181c27;--ink:#eceef5;--soft:#a9b1c6;--line:#717a92;
--hair:#2b3142;--accent:#93a9ff;--on-accent:#0d1330;--accent-strong:#b0c0ff;--bad:#ff9ba6;--bad-soft:#3a1a20;--good:#7ddba5}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;grid-template:1fr auto/minmax(0,1fr);justify-items:center;background:var(--page);
color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;-webkit-text-size-adjust:100%}
main{align-self:center;width:min(100% - 2rem,26rem);margin:2rem 0;padding:clamp(1.25rem,6vw,2.25rem);background:var(--card);
border:1px solid var(--hair);border-radius:1rem;box-shadow:0 1px 2px #0000000f,0 12px 32px #00000014}
.brand{display:flex;align-items:center;gap:.6rem;margin:0 0 1.75rem;font-weight:650;letter-spacing:-.01em}
.brand svg{width:1.75rem;height:1.75rem;color:var(--accent)}
h1{margin:0 0 .35rem;font-size:1.5rem;line-height:1.25;letter-spacing:-.02em;overflow-wrap:anywhere}
p{margin:0 0 1rem}.lead{color:var(--soft);margin-bottom:1.5rem}
label{display:block;margin:0 0 1.1rem;font-weight:550}
.hint{display:block;font-weight:400;font-size:.875rem;color:var(--soft)}
input,select{display:block;width:100%;min-height:2.9rem;margin-top:.35rem;padding:.6rem .8rem;font:inherit;font-weight:400;color:inherit;
background:var(--page);border:1px solid var(--line);border-radius:.6rem}
input.code{font:600 1.35rem/1.4 ui-monospace,SFMono-Regular,Menlo,monospace;letter-spacing:.12em;text-transform:uppercase}
button,.button{display:block;width:100%;min-height:2.9rem;padding:.65rem 1rem;font:inherit;font-weight:600;text-align:center;
text-decoration:none;color:var(--on-accent);background:var(--accent);border:1px solid transparent;border-radius:.6rem;cursor:pointer}
button:hover,.button:hover{background:var(--accent-strong)}
.quiet{color:var(--ink);background:transparent;border-color:var(--line);margin-top:.75rem}
.quiet:hover{background:var(--page)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.problem{margin:0 0 1.25rem;padding:.75rem .9rem;color:var(--bad);background:var(--bad-soft);border-left:.25rem solid var(--bad);
border-radius:.4rem}
.facts{overflow:hidden;margin:0 0 1.5rem;padding:0;list-style:none;border:1px solid var(--hair);border-radius:.75rem}
.facts li{padding:.65rem .9rem;border-top:1px solid var(--hair);overflow-wrap:anywhere}.facts li:first-child{border-top:0}
.facts small{display:block;color:var(--soft);font-size:.8125rem}
.shown{margin:0 0 1.5rem;padding:.9rem;text-align:center;font:650 1.6rem/1.3 ui-monospace,SFMono-Regular,Menlo,monospace;
letter-spacing:.14em;background:var(--page);border-radius:.75rem}
.id{font:.8125rem/1.5 ui-monospace,SFMono-Regular,Menlo,monospace;color:var(--soft);overflow-wrap:anywhere}
a{color:var(--accent)}footer{padding:0 1rem 1.25rem;color:var(--soft);font-size:.8125rem;text-align:center}
pre{margin:.5rem 0 0;padding:.75rem;white-space:pre-wrap;overflow-wrap:anywhere;font:.8125rem/1.5 ui-monospace,SFMono-Regular,Menlo,monospace;background:var(--page);border-radius:.6rem}
h2{margin:2rem 0 .75rem;font-size:1.1rem;letter-spacing:-.01em}
.problem .button{margin-top:.75rem}h2 .hint{display:inline;margin-left:.35rem}
.help{margin:0;padding-left:1.1rem;color:var(--soft);font-size:.9375rem}.help li+li{margin-top:.5rem}.help pre{color:var(--ink)}
form+p,script+p{margin-top:1.25rem}main>:last-child{margin-bottom:0}
[hidden]{display:none!important}
`;
