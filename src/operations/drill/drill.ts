import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDrillInstance, type Weaken } from './drill-app.ts';
import { must, playAll, type Rule, type World } from './rules.ts';
import { createVisitor, dataOf, overLoopback } from './visitor.ts';

/**
 * `npm start -- drill`: starts a separate instance, breaks one thing after another, and reports for every rule whether it
 * held. It does not touch an installation: it reads no setting, and writes only to a temporary folder that it removes.
 */
export async function drill(
  folder: string,
  {
    weaken,
    told = () => undefined,
    isAsked = () => true,
  }: { weaken?: Weaken; told?: (rule: Rule) => void; isAsked?: (scenario: string) => boolean } = {},
): Promise<Rule[]> {
  const rules: Rule[] = [];
  const instance = await openDrillInstance(folder, weaken);
  try {
    const { uiUrl, firstAdministrator, secret } = instance;
    const password = secret();
    const visitor = () => createVisitor(uiUrl, overLoopback);
    const [admin, owner, other] = [visitor(), visitor(), visitor()];
    await firstAdministrator.ensure({ email: 'admin@drill.test', password });
    await admin.signIn('admin@drill.test', password);
    const account = (name: string) =>
      admin.api('POST', '/users', { email: `${name}@drill.test`, name, password });
    const ownerId = String(dataOf(await must(account('owner')))['id']);
    await must(account('other'));
    await owner.signIn('owner@drill.test', password);
    await other.signIn('other@drill.test', password);
    const world: World = {
      instance,
      admin,
      owner,
      other,
      ownerId,
      signIn: () => owner.signIn('owner@drill.test', password),
    };
    await playAll(
      world,
      (rule) => {
        rules.push(rule);
        told(rule);
      },
      isAsked,
    );
  } finally {
    await instance.close();
  }
  return rules;
}

/** 0 when every rule held, 1 otherwise. Ctrl-C leaves nothing behind either. */
export async function runDrill({ isJson }: { isJson: boolean }): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-drill-'));
  // Also when process.exit() is called early: the folder is all that would outlive the process.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)
    process.once(signal, () => process.exit(code));
  const startedAt = performance.now();
  const rules = await drill(folder, isJson ? {} : { told: say() });
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
  const broken = rules.filter(({ passed }) => !passed).length;
  if (isJson) console.log(JSON.stringify({ ok: broken === 0, seconds, rules }, null, 2));
  else
    console.log(
      `\n${rules.length - broken} of ${rules.length} rules held, in ${seconds} s.${broken === 0 ? '' : ` FAILED: ${broken}.`}`,
    );
  return broken === 0 ? 0 : 1;
}

function say(): (rule: Rule) => void {
  let last = '';
  return ({ scenario, rule, expected, got, passed }) => {
    if (scenario !== last) console.log(`\n${scenario}`);
    last = scenario;
    console.log(
      `  ${passed ? 'held  ' : 'FAILED'}  ${rule}: ${passed ? got : `${got}, expected ${expected}`}`,
    );
  };
}
