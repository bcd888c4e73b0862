import type { Role } from '../../src/core/caller.ts';
import { type Clock, minute } from '../../src/core/clock.ts';
import { bounded } from '../../src/features/people/directory/bounded.ts';
import { readIntrospection } from '../../src/features/people/directory/introspection.ts';
import type { Directory, Principal } from '../../src/features/people/directory/directory.ts';

/** How the provider behind the fake behaves from now on. */
export type Trouble = 'none' | 'down' | 'slow' | 'wrong' | 'garbled';

type Person = { name: string; email: string; isEnabled: boolean; roles: readonly Role[] };
type Token = { subject: string; clientId: string; scopes: readonly string[]; expiresAt: number };

export type FakeDirectory = Directory & {
  /** Adds or replaces a person. */
  person(subject: string, change?: Partial<Person>): void;
  removePerson(subject: string): void;
  token(value: string, token: Partial<Token> & { subject: string }): void;
  revoke(value: string): void;
  /** `wrong` answers in good form about someone else; `garbled` in no form at all. */
  trouble(kind: Trouble): void;
  /** Questions asked so far. */
  asked(): number;
};

/** A directory that does what a test says. It reads its provider's answers with the production reader. */
export function fakeDirectory({
  clock,
  issuer = 'https://id.example',
}: {
  clock: Clock;
  issuer?: string;
}): FakeDirectory {
  const people = new Map<string, Person>();
  const removed = new Set<string>();
  const tokens = new Map<string, Token>();
  let trouble: Trouble = 'none';
  let asked = 0;
  // Only a question without an answer has a short limit: a healthy one never meets it, however busy the machine is.
  const limitMs = () => (trouble === 'slow' ? 10 : minute);

  async function reach(): Promise<void> {
    asked += 1;
    if (trouble === 'down') throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    if (trouble === 'slow') await new Promise(() => {});
  }
  const reasonOf = (error: unknown) =>
    error instanceof Error && 'code' in error ? String(error.code) : 'error';

  function answerAbout(value: string): Record<string, unknown> {
    if (trouble === 'garbled') return { active: 'true' };
    const token = tokens.get(value);
    if (token === undefined || !people.get(token.subject)?.isEnabled) return { active: false };
    return {
      active: true,
      iss: trouble === 'wrong' ? 'https://someone-else.example' : issuer,
      sub: token.subject,
      client_id: token.clientId,
      token_type: 'Bearer',
      scope: token.scopes.join(' '),
      exp: Math.floor(token.expiresAt / 1000),
    };
  }

  function principalOf(subject: string): Principal {
    const person = people.get(subject);
    if (person === undefined) return { kind: 'missing', wasKnown: removed.has(subject) };
    if (!person.isEnabled) return { kind: 'disabled' };
    return { kind: 'active', subject, name: person.name, email: person.email, roles: person.roles };
  }

  return {
    introspect: (token) =>
      bounded(
        async () => {
          await reach();
          return readIntrospection(answerAbout(token), { issuer, now: clock.now() });
        },
        limitMs(),
        reasonOf,
      ),
    principal: (subject) =>
      bounded<Principal>(
        async () => {
          await reach();
          if (trouble === 'garbled' || trouble === 'wrong') return { kind: 'unavailable', reason: trouble };
          return principalOf(subject);
        },
        limitMs(),
        reasonOf,
      ),
    person(subject, change = {}) {
      const before = people.get(subject) ?? {
        name: subject,
        email: `${subject}@example.com`,
        isEnabled: true,
        roles: ['user'] as const,
      };
      people.set(subject, { ...before, ...change });
    },
    removePerson(subject) {
      if (people.delete(subject)) removed.add(subject);
    },
    token(value, token) {
      tokens.set(value, {
        clientId: 'postern-cli',
        scopes: ['openid'],
        expiresAt: clock.now() + 300_000,
        ...token,
      });
    },
    revoke: (value) => void tokens.delete(value),
    trouble: (kind) => void (trouble = kind),
    asked: () => asked,
  };
}
