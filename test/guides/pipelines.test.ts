import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { githubUrl, gitlabUrl, kubernetesUrl } from '../api/federation/platforms.ts';
import { openPlatform, type Platform } from '../id-tokens/platforms.ts';
import { type Runner, startRunner } from '../id-tokens/runner.ts';
import { type Guides, missingTools, openGuides, samplesOf } from './guides.ts';

// What the guide about pipelines tells people to type and to put into jobs. The public keys of the issuers are pasted.
const page = 'how-to/publish-from-a-pipeline-without-a-secret.md';

describe.skipIf(missingTools().length > 0)('publish from a pipeline without a secret', () => {
  const github = openPlatform('github', githubUrl);
  const gitlab = openPlatform('gitlab', gitlabUrl);
  const kubernetes = openPlatform('kubernetes', kubernetesUrl);
  let guides: Guides;
  let runner: Runner;
  let samples: Record<
    'allow' | 'create' | 'createSite' | 'claims' | 'try' | 'refusal' | 'add' | 'erase',
    string
  >;
  let rules: string[];
  let jobs: ReturnType<typeof parse>[];
  let keyId: string;
  let site: string;

  beforeAll(async () => {
    guides = await openGuides();
    runner = await startRunner(github);
    const text = await readFile(join(import.meta.dirname, '../../docs', page), 'utf8');
    const blocks = (kind: string) =>
      [...text.matchAll(new RegExp(`^\`\`\`${kind}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, body = '']) => body);
    rules = blocks('json');
    jobs = blocks('yaml').map((body) => parse(body));
    const [
      allow = '',
      create = '',
      createSite = '',
      claims = '',
      tries = '',
      refusal = '',
      add = '',
      erase = '',
    ] = await samplesOf(page);
    samples = { allow, create, createSite, claims, try: tries, refusal, add, erase };
    mkdirSync(join(guides.folder, 'bin'));
    symlinkSync(process.execPath, join(guides.folder, 'bin/node'));
    mkdirSync(join(guides.folder, 'dist'));
    writeFileSync(join(guides.folder, 'dist/index.html'), '<h1>From a pipeline</h1>');
  });
  afterAll(async () => {
    runner?.close();
    await guides?.close();
  });

  const asAdministrator = (script: string) =>
    guides.bash(`BASE=${guides.origin}\nKEY_ID=${keyId}\n${script}`);

  /** Runs commands of a job with its variables, after the three values of the guide were replaced. */
  async function inJob(commands: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
    const replaced = (text: string) =>
      text
        .replaceAll('https://postern.example.com', guides.origin)
        .replaceAll('9sWm3RtY6bHc', keyId)
        .replaceAll('k3v9x0q2m7', site)
        .replaceAll('/var/run/postern/token', join(guides.folder, 'token'));
    const settings = Object.fromEntries(Object.entries(env).map(([name, text]) => [name, replaced(text)]));
    const own = commands.filter((command) => !command.startsWith('npm '));
    return await guides.bash(replaced(own.join('\n')), {
      settings: { ...settings, PATH: `${guides.folder}/bin:${process.env['PATH']}` },
    });
  }

  function githubJob(): { commands: string[]; env: Record<string, string> } {
    const job = jobs[0].jobs.publish;
    expect(job.permissions).toMatchObject({ 'id-token': 'write' });
    const commands = job.steps.flatMap(({ run = '' }) => (run === '' ? [] : [run]));
    return { commands, env: job.env };
  }

  const idTokenOf = async ({ sign, claims }: Platform, audience: string) =>
    await sign(claims(Date.now(), audience.replace('https://postern.example.com', guides.origin)));

  test('the issuers are allowed, and a key is created with a rule for each platform', async () => {
    for (const { issuer, publicKey } of [github, gitlab, kubernetes]) {
      const pasted = `"preset": "${issuer.preset}", "jwks": ${JSON.stringify({ keys: [publicKey] })}`;
      const script = samples.allow.replace(githubUrl, issuer.url).replace('"preset": "github"', pasted);
      expect(await guides.bash(script)).toMatch(/^\d+\n$/);
    }
    expect(rules).toHaveLength(3);
    writeFileSync(join(guides.folder, 'rule.json'), rules.join('\n'));
    const made = await asAdministrator(`${samples.create}\necho "id=$KEY_ID"`);
    expect(made).toMatch(/"credential": "federated",\s*"trustRules": 3/);
    keyId = /id=(\w{12})\n/.exec(made)?.[1] ?? '';
  });

  test('a job of GitHub creates the site and publishes to it', async () => {
    const { commands, env } = githubJob();
    const created = await inJob([...commands.slice(0, -1), samples.createSite], { ...env, ...runner.env });
    site = created.trim();
    expect(site).toMatch(/^\w+$/);
    const published = await inJob(commands, { ...env, ...runner.env });
    expect(published).toContain('Version 1 of handbook is live for everyone');
  });

  test('a job of GitLab and one of Kubernetes publish to it, too', async () => {
    const { variables, id_tokens: idTokens, script } = jobs[1].publish;
    const { aud } = idTokens.POSTERN_ID_TOKEN;
    const ofGitlab = await inJob(script, {
      ...variables,
      POSTERN_ID_TOKEN: await idTokenOf(gitlab, aud),
      GITLAB_CI: 'true',
      CI: 'true',
    });
    expect(ofGitlab).toContain('Version 2 of handbook is live');

    const { containers, volumes, serviceAccountName } = jobs[2].spec.template.spec;
    expect(rules[2]).toContain(`"${serviceAccountName}"`);
    const [{ env, args }] = containers;
    const { audience } = volumes[0].projected.sources[0].serviceAccountToken;
    writeFileSync(join(guides.folder, 'token'), await idTokenOf(kubernetes, audience));
    const named = env.map(({ name, value }: { name: string; value: string }) => [name, value]);
    expect(await inJob(args, Object.fromEntries(named))).toContain('Version 3 of handbook is live');
  });

  test('a rule is tried with the claims of a job', async () => {
    const claimsOf = async (of: Runner) =>
      await inJob([samples.claims], { ...of.env, POSTERN_URL: guides.origin });
    await claimsOf(runner);
    expect(JSON.parse(await asAdministrator(samples.try))).toEqual({ accepted: true, failed: [] });
    const other = await startRunner(github, { ref: 'refs/heads/topic' });
    await claimsOf(other);
    other.close();
    expect(JSON.parse(await asAdministrator(samples.try))).toEqual({
      accepted: false,
      failed: [{ claim: 'ref', expected: 'refs/heads/main', found: 'refs/heads/topic' }],
    });
  });

  test('a job that no rule accepts ends with 4, and its request id leads to the reason', async () => {
    const { commands, env } = githubJob();
    const other = await startRunner(github, { ref: 'refs/heads/topic' });
    const failure = String(await inJob(commands, { ...env, ...other.env }).catch((error: unknown) => error));
    other.close();
    expect(failure).toContain('ended with 4');
    const id = /Request: (\S+)/.exec(failure)?.[1] ?? '';
    const script = samples.refusal.replace('REQUEST_ID=…', `REQUEST_ID=${id}`);
    await expect.poll(() => asAdministrator(script)).toContain('No rule of the key accepts the claims');
  });

  test('a key with a value becomes federated: the job works before and after, and the value only before', async () => {
    const body = { name: 'older', scopes: ['sites:write'], repositoryAccess: { mode: 'all' } };
    writeFileSync(join(guides.folder, 'body.json'), JSON.stringify(body));
    const made = JSON.parse(
      await guides.bash(
        `curl -s -b jar -H 'Origin: ${guides.origin}' --json @body.json ${guides.origin}/api/v2/tokens`,
      ),
    );
    keyId = made.data.id;
    writeFileSync(join(guides.folder, 'rule.json'), rules[0] ?? '');
    const { env } = githubJob();
    const statusOfValue = () =>
      guides.bash(
        `curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer ${made.data.token}' ${guides.origin}/api/v2/auth/context`,
      );
    const whoami = ['node postern.mjs whoami --fields keyId,authMethod'];

    expect(await asAdministrator(samples.add)).toMatch(/^"rul_\w+"\n$/);
    expect(await inJob(whoami, { ...env, ...runner.env })).toBe(`${keyId}\tfederated\n`);
    expect(await statusOfValue()).toBe('200');
    expect(await asAdministrator(samples.erase)).toBe('"federated"\n');
    await expect.poll(statusOfValue).toBe('401');
    expect(await inJob(whoami, { ...env, ...runner.env })).toBe(`${keyId}\tfederated\n`);
  });
});
