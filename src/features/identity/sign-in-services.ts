import { second, minute } from '../../core/clock.ts';
import { newId } from '../../core/ids.ts';
import type { Directory } from './directory.ts';
import type { CommonDeps, Identity } from './identity.ts';
import { createSignInLimit } from './login/sign-in-limit.ts';
import { createLoginFlow } from './login/login.ts';
import type { OidcClient } from './oidc-client.ts';
import { createReencryption } from './reencryption.ts';
import type { Encryption } from './encryption.ts';
import { createAccessTokens } from './sessions/access-token.ts';
import { createSessions } from './sessions/sessions.ts';
import { createPeople } from './people.ts';
import { sweepIdentity } from './sweep.ts';

/** Sign-in, sessions and users: the part that is the same for every provider. */
export function createSignedIn(
  deps: CommonDeps & { issuer: string; client: OidcClient; directory: Directory; encryption: Encryption },
): Pick<
  Identity,
  | 'sessions'
  | 'login'
  | 'accessTokenFor'
  | 'findUser'
  | 'findUserBySubject'
  | 'learnUser'
  | 'people'
  | 'limitSignIn'
  | 'jobs'
  | 'stop'
> {
  const { read, tx, feed, clock, random, client, directory, encryption } = deps;
  const sessions = createSessions({
    read: read.sessions,
    tx,
    feed,
    clock,
    random,
    secrets: deps.sessionSecrets,
  });
  const accessTokens = createAccessTokens({
    read: read.sessions,
    client,
    directory,
    encryption,
    clock,
    holder: deps.holder,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    endSession: sessions.end,
  });
  const reencryption = createReencryption({ read, encryption });
  return {
    sessions,
    login: createLoginFlow({
      uiOrigin: deps.uiOrigin,
      client,
      attempts: read.attempts,
      users: read.users,
      sessions,
      encryption,
      clock,
      random,
      log: deps.log,
    }),
    accessTokenFor: accessTokens.accessTokenFor,
    findUser: (id) => read.users.find(id),
    findUserBySubject: (issuer, subject) => read.users.findBySubject(issuer, subject),
    async learnUser({ issuer, subject }) {
      const known = await read.users.findBySubject(issuer, subject);
      if (known !== undefined) return known;
      const principal = await directory.principal(subject);
      const name = principal.kind === 'active' ? principal.name : subject;
      return await read.users.learn({ newId: newId(random, 'usr'), issuer, subject, name });
    },
    people: createPeople({ issuer: deps.issuer, users: read.users, directory }),
    limitSignIn: createSignInLimit({ clock, signInsPerMinute: deps.signInsPerMinute }),
    jobs: [
      { name: 'sessions-seen', everyMs: 30 * second, leased: false, run: sessions.flushLastSeen },
      // Often enough that an administrator who rotates ENCRYPTION_KEY can wait for it.
      { name: 'reseal', everyMs: minute, leased: true, run: async () => void (await reencryption.run()) },
      { name: 'identity-sweep', everyMs: 10 * minute, leased: true, run: () => sweepIdentity(read, clock) },
    ],
    stop: () => sessions.flushLastSeen(),
  };
}
