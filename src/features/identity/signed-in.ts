import { second, minute } from '../../core/clock.ts';
import { newId } from '../../core/ids.ts';
import type { Directory } from './directory.ts';
import type { CommonDeps, Identity } from './identity.ts';
import { createAdmission } from './login/admission.ts';
import { createLoginFlow } from './login/login.ts';
import type { OidcClient } from './oidc-client.ts';
import { createResealing } from './resealing.ts';
import type { Sealer } from './sealing.ts';
import { createAccessTokens } from './sessions/access-token.ts';
import { createSessions } from './sessions/sessions.ts';
import { createPeople } from './people.ts';
import { sweepIdentity } from './sweep.ts';

/** Signing in, sessions and the people behind them: the same for every provider. */
export function createSignedIn(
  deps: CommonDeps & { issuer: string; client: OidcClient; directory: Directory; sealer: Sealer },
): Pick<
  Identity,
  | 'sessions'
  | 'login'
  | 'accessTokenFor'
  | 'findUser'
  | 'findUserBySubject'
  | 'learnUser'
  | 'people'
  | 'admit'
  | 'jobs'
  | 'stop'
> {
  const { read, tx, feed, clock, random, client, directory, sealer } = deps;
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
    sealer,
    clock,
    holder: deps.holder,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    endSession: sessions.end,
  });
  const resealing = createResealing({ read, sealer });
  return {
    sessions,
    login: createLoginFlow({
      uiOrigin: deps.uiOrigin,
      client,
      attempts: read.attempts,
      users: read.users,
      sessions,
      sealer,
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
    admit: createAdmission({ clock }),
    jobs: [
      { name: 'sessions-seen', everyMs: 30 * second, leased: false, run: sessions.flushLastSeen },
      // Often enough that whoever rotates ENCRYPTION_KEY can wait for it.
      { name: 'reseal', everyMs: minute, leased: true, run: async () => void (await resealing.run()) },
      { name: 'identity-sweep', everyMs: 10 * minute, leased: true, run: () => sweepIdentity(read, clock) },
    ],
    stop: () => sessions.flushLastSeen(),
  };
}
