/**
 * The page's only script: it shows the operations that match the typed words, and opens their groups. It only reads and
 * hides; the page's policy lets it load and send nothing (decision 0040). Without it, readers open the groups by hand.
 */
export const filterScript = `
const field = document.getElementById('filter');
const found = document.getElementById('found');
const groups = [...document.querySelectorAll('details.group')];
const entries = new Map([...document.querySelectorAll('nav li a')].map((link) => [link, link.getAttribute('href').slice(1)]));
field.parentElement.hidden = false;
field.addEventListener('input', () => {
  const words = field.value.toLowerCase().split(/\\s+/).filter((word) => word !== '');
  const shown = new Set();
  for (const group of groups) {
    let own = 0;
    for (const operation of group.querySelectorAll('.operation')) {
      const fits = words.every((word) => operation.dataset.words.includes(word));
      operation.hidden = !fits;
      if (fits) { shown.add(operation.id); own += 1; }
    }
    group.hidden = own === 0;
    group.open = words.length > 0 && own > 0;
  }
  for (const [link, id] of entries) link.parentElement.hidden = words.length > 0 && !shown.has(id);
  for (const head of document.querySelectorAll('nav h2'))
    head.hidden = [...head.nextElementSibling.children].every((one) => one.hidden);
  found.textContent = words.length === 0 ? '' : shown.size + (shown.size === 1 ? ' operation' : ' operations');
});
`;
