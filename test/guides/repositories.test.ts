import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newRepository, type TestRepository } from '../git-repository.ts';
import { httpsGitServer, isSshServerMissing, sshGitServer } from '../git-servers.ts';
import { type Guides, missingTools, openGuides, samplesOf } from './guides.ts';

// What the guide about git servers tells people to type, against real git servers on this machine.
describe.skipIf(missingTools().length > 0)('give Postern access to a repository', () => {
  const token = 'token-of-the-guide';
  let guides: Guides;
  let server: Awaited<ReturnType<typeof httpsGitServer>>;
  let repository: TestRepository;
  let begin: string;
  let samples: string[];
  beforeAll(async () => {
    repository = newRepository();
    repository.commit({ 'postern.yaml': 'version: 1\nservices: {}\n' });
    const authorization = `Basic ${Buffer.from(`git:${token}`).toString('base64')}`;
    server = await httpsGitServer(tmpdir(), { authorization });
    guides = await openGuides();
    await guides.stop();
    await guides.start({ settings: { OUTBOUND_ALLOW_PRIVATE: 'true', OUTBOUND_CA_FILE: server.caFile } });
    samples = await samplesOf('how-to/give-access-to-a-repository.md');
    begin = `BASE=${guides.origin}\n${samples[0]}`;
  });
  afterAll(async () => {
    await guides.close();
    await server.stop();
    repository.remove();
  });

  /** Sends the clone URL, as the registry's page does. */
  const register = (method: 'POST' | 'PATCH', cloneUrl: string) =>
    guides.bash(`${begin}
      curl -s -b jar -H "Origin: $BASE" -X ${method} -H 'content-type: application/json' \
        -d '{"cloneUrl": "${cloneUrl}"${method === 'POST' ? ', "fullName": "acme/website"' : ''}}' \
        ${method === 'POST' ? '"$BASE/api/v2/repositories"' : '"$REPOSITORY"'}`);
  const look = () => guides.bash(`${begin}${samples[3]}`);
  const path = () => `${repository.folder.split('/').at(-1)}/.git`;

  test('over https: refused without the token, read with it, and refused again once it is removed', async () => {
    expect(await register('POST', `https://localhost:${new URL(server.origin).port}/${path()}`)).toContain(
      '"id"',
    );
    expect(await look()).toContain('"reason":"credential_refused"');
    const stored = await guides.bash(`${begin}${samples[1]?.replace('read -rs', 'read -r')}`, {
      input: `${token}\n`,
    });
    expect(stored).toContain('"kind":"token"');
    const seen = await look();
    expect(seen).toContain('"isDefault":true');
    expect(seen).toContain('"valid":false');
    expect(await guides.bash(`${begin}${samples[4]}`)).toContain('"credential":null');
    expect(await look()).toContain('"reason":"credential_refused"');
  });

  // src/platform/git/git.test.ts reads a repository over ssh. The test's server has no account named git.
  test.skipIf(isSshServerMissing)(
    'over ssh: a new key and the host key of the server are stored',
    async () => {
      const sshServer = await sshGitServer();
      const { port } = new URL(sshServer.origin);
      await register('PATCH', `ssh://git@localhost:${port}/srv/website.git`);
      const typed = samples[2]?.replace('git.example.com', `-p ${port} localhost 2>/dev/null`);
      expect(await guides.bash(`${begin}${typed}`)).toContain('"kind":"ssh_key"');
      await sshServer.stop();
    },
  );
});
