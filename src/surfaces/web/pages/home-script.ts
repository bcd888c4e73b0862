/**
 * The start page's script: offers what the policy allows, lists keys, creates one, shows its value once, revokes, and
 * disconnects clients.
 * It puts text into the page as text only, and keeps the value nowhere but in the field that shows it.
 */
export const homeScript = `(function () {
'use strict';
const $ = (id) => document.getElementById(id);
const form = $('create'), problem = $('problem');
let offered;

async function api(method, path, body) {
  const answer = await fetch('/api/v2' + path, body === undefined ? { method } :
    { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const json = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(json.error.message), { status: answer.status, hint: json.error.hint });
  return json;
}

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function say(error) {
  if (error.status === 401) return signedOut();
  if (error.status === undefined) return complain('The server could not be reached. Try again.');
  const sentence = /[.!?]$/.test(error.message) ? error.message : error.message + '.';
  complain(error.hint === undefined ? sentence : sentence + ' ' + error.hint);
}

function complain(text) {
  problem.replaceChildren(text);
  problem.hidden = false;
  problem.focus();
}

// A key that is on show stays: it is shown this once.
function signedOut() {
  for (const id of ['create', 'mine', 'connected', 'leave']) $(id).hidden = true;
  problem.replaceChildren(make('strong', {}, 'You are signed out.'), ' Your session has ended; nothing was changed.',
    make('a', { className: 'button', href: '/auth/login?returnTo=/' }, 'Sign in'));
  problem.hidden = false;
  problem.focus();
}

// ---- what may be created

function hoursInWords(hours) {
  const [count, unit] = hours % 24 === 0 ? [hours / 24, 'day'] : [hours, 'hour'];
  return count + ' ' + unit + (count === 1 ? '' : 's');
}

function offer(policy) {
  const { defaultTtlHours, maxTtlHours, offeredTtlHours, allowNoExpiry } = policy.lifetime;
  const hours = [...new Set([...offeredTtlHours, defaultTtlHours, maxTtlHours])].filter((one) => one <= maxTtlHours);
  const options = hours.sort((a, b) => a - b).map((one) => make('option', { value: String(one) }, hoursInWords(one)));
  if (allowNoExpiry) options.push(make('option', { value: '' }, 'No expiry'));
  form.elements.ttl.replaceChildren(...options);
  $('longest').textContent = allowNoExpiry ? 'A lifetime is at most ' + hoursInWords(maxTtlHours) + '; or choose no expiry.'
    : 'At most ' + hoursInWords(maxTtlHours) + '.';
  for (const box of form.querySelectorAll('input[name=scope]')) {
    box.disabled = !policy.allowedScopes.includes(box.value);
    box.closest('label').hidden = box.disabled;
    if (box.disabled) box.checked = false;
  }
}

// Changes with every key that is made or revoked, so it leaves what the person has filled in alone.
function count(policy) {
  $('count').textContent = policy.activeKeys.count + ' of ' + policy.activeKeys.limit + ' active';
  $('make').disabled = !policy.canCreate;
  $('refused').hidden = policy.canCreate;
  $('refused').textContent = policy.reasons.map((reason) => reason.message).join(' ');
}

// The lifetime and the reach that are selected at first, the narrow one; what was typed meanwhile stays.
function preselect(policy) {
  form.elements.ttl.value = String(policy.lifetime.defaultTtlHours);
  $('reach').value = 'selected';
  showNames();
}

// A scope may be given to a key although its owner's role does not reach that far: the role is asked at every use.
async function markUseless() {
  await Promise.all([...form.querySelectorAll('input[name=scope]:enabled')].map(async (box) => {
    const { data } = await api('GET', '/auth/context?can=' + box.value);
    const missing = data.decision.rules.find(({ rule, passed }) => rule === 'role' && !passed);
    if (missing !== undefined) box.nextElementSibling.append(
      make('small', { className: 'warn' }, 'You cannot use it now. ' + missing.detail));
  }));
}

function offerRepositories(policy, repositories, total) {
  const { allowAll, maxSelected } = policy.repositories;
  $('everywhere').hidden = repositories.length > 0;
  $('everywhere').textContent = allowAll ? 'The key will work on all repositories, also on those registered later.'
    : 'Keys must name their repositories, and none is registered yet. An administrator can register one.';
  $('which').hidden = repositories.length === 0;
  $('reach').replaceChildren(
    make('option', { value: 'selected' }, 'Only those I choose'),
    ...(allowAll ? [make('option', { value: 'all' }, 'All, also those registered later')] : []));
  $('names').replaceChildren(...repositories.map(({ fullName }) =>
    make('label', {}, make('input', { type: 'checkbox', name: 'repository', value: fullName }), make('span', {}, fullName))));
  $('most').textContent = 'At most ' + maxSelected + '.'
    + (total > repositories.length ? ' The first ' + repositories.length + ' of ' + total + ' are listed; the API takes any.' : '');
}

function showNames() {
  $('chosen').hidden = $('which').hidden || $('reach').value === 'all';
}

function checked(name) {
  return [...form.querySelectorAll('input[name=' + name + ']:checked')].map((box) => box.value);
}

// ---- my keys

const day = (text) => new Date(text).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });

function end(key) {
  if (key.status === 'revoked') return 'revoked on ' + day(key.revokedAt);
  if (key.status === 'expired') return 'expired on ' + day(key.expiresAt);
  const until = key.expiresAt === null ? 'active, no expiry' : 'active until ' + day(key.expiresAt);
  return key.suspended ? until + ', suspended' : until;
}

function item(key) {
  const where = key.repositories.mode === 'all' ? 'all repositories' : key.repositories.repositories.join(', ');
  const li = make('li', {}, make('div', {}, key.name,
    make('small', {}, key.id + ' · ' + end(key)), make('small', {}, key.scopes.join(', ') + ' · ' + where)));
  if (key.status !== 'active') return li;
  withQuestion(li, { verb: 'Revoke', name: key.name, sure: 'Revoke for good', no: 'Keep it',
    consequence: 'Scripts that use this key stop working at once. This cannot be undone.',
    async act() { await api('DELETE', '/me/tokens/' + key.id); await show(); $('mine').focus(); } });
  return li;
}

// What ends something takes a second press, on another button.
function withQuestion(li, { verb, name, sure, no, consequence, act }) {
  const button = make('button', { type: 'button', className: 'quiet', ariaLabel: verb + ' ' + name }, verb);
  button.onclick = () => {
    const doIt = make('button', { type: 'button', className: 'danger', ariaLabel: sure.replace(verb, () => verb + ' ' + name) }, sure);
    const leaveIt = make('button', { type: 'button', className: 'quiet' }, no);
    const question = make('div', { className: 'ask', role: 'group', ariaLabel: verb + ' ' + name + '?' },
      make('p', {}, consequence), doIt, leaveIt);
    doIt.onclick = async () => {
      doIt.disabled = leaveIt.disabled = true;
      try { await act(); }
      catch (error) { doIt.disabled = leaveIt.disabled = false; say(error); }
    };
    leaveIt.onclick = () => { question.remove(); button.hidden = false; button.focus(); };
    button.hidden = true;
    li.append(question);
    leaveIt.focus();
  };
  li.append(button);
}

// ---- connected clients

function clientItem(client) {
  const used = client.lastUsedAt === null ? 'never used' : 'last used ' + day(client.lastUsedAt);
  const li = make('li', {}, make('div', {}, client.name,
    make('small', {}, 'since ' + day(client.since) + ' · ' + used), make('small', {}, client.scopes.join(', '))));
  withQuestion(li, { verb: 'Disconnect', name: client.name, sure: 'Disconnect now', no: 'Keep it connected',
    consequence: 'It can no longer act for you, and has to ask you again.',
    async act() { await api('DELETE', '/me/clients/' + encodeURIComponent(client.clientId)); await showClients(); $('mine').focus(); } });
  return li;
}

async function showClients() {
  const { data } = await api('GET', '/me/clients');
  $('clients').replaceChildren(...data.map(clientItem));
  $('connected').hidden = data.length === 0;
}

async function show() {
  const [keys, policy] = await Promise.all([api('GET', '/me/tokens?limit=100'), api('GET', '/me/tokens/policy')]);
  $('keys').replaceChildren(...keys.data.map(item));
  $('none').hidden = keys.data.length > 0;
  count(policy.data);
  return policy.data;
}

async function start() {
  const [policy, repositories] = await Promise.all([show(), api('GET', '/repositories?limit=100')]);
  offer(policy);
  offerRepositories(policy, repositories.data, repositories.metadata.pagination.items);
  preselect(offered = policy);
  await Promise.all([markUseless(), showClients()]);
}

// ---- a new key

form.onsubmit = async (event) => {
  event.preventDefault();
  problem.hidden = $('made').hidden = true;
  $('value').value = $('copied').textContent = '';
  const isAll = $('which').hidden || $('reach').value === 'all';
  const body = { name: form.elements.name.value, scopes: checked('scope'),
    repositoryAccess: isAll ? { mode: 'all' } : { mode: 'selected', repositories: checked('repository') } };
  if (body.scopes.length === 0) return complain('Choose at least one scope: what the key may do.');
  if (!isAll && checked('repository').length === 0) return complain('Choose at least one repository.');
  if (form.elements.ttl.value !== '') body.ttlHours = Number(form.elements.ttl.value);
  $('make').disabled = true;
  try {
    const { data } = await api('POST', '/me/tokens', body);
    $('value').value = data.token;
    $('made').hidden = false;
    $('value').focus();
    $('value').select();
    form.reset();
    preselect(offered);
    await show();
  } catch (error) {
    $('make').disabled = false;
    say(error);
  }
};
$('reach').onchange = showNames;
$('copy').onclick = async () => {
  const field = $('value');
  field.focus();
  field.select();
  let isCopied = false;
  try { await navigator.clipboard.writeText(field.value); isCopied = true; }
  catch { isCopied = document.execCommand('copy'); }
  $('copied').textContent = isCopied ? 'Copied.' : 'Select the value and copy it with the keyboard.';
};
$('stored').onclick = () => { $('value').value = ''; $('made').hidden = true; form.elements.name.focus(); };
start().catch(say);
})()`;
