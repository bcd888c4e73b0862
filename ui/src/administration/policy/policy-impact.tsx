import { Alert } from '@mantine/core';
import type { Schemas } from '../../api/contract.ts';
import { countOf } from '../../shell/count.ts';
import common from '../admin.module.css';

type Impact = NonNullable<Schemas['KeyPolicyChange']['dryRun']>;

const reasons: Readonly<Record<string, string>> = {
  api_keys_disabled: 'its type is switched off',
  issuance_disabled: 'new ones are switched off',
  scope_not_allowed: 'a scope is not allowed',
  repository_policy: 'it reaches too many repositories',
  expiry_required: 'it has no expiry',
  lifetime_too_long: 'it lives too long',
};

/** Existing keys that the new policy would not allow. No key changes; only keys of switched-off types stop working. */
export function PolicyImpact({ of: { keys, owners, refused } }: { of: Impact }) {
  if (keys === 0) {
    return (
      <Alert color="green" title="No existing key is affected">
        Every active key that the current policy allows could be created again.
      </Alert>
    );
  }
  return (
    <Alert
      color="yellow"
      title={`${countOf(keys, 'key')} of ${countOf(owners, 'owner')} could not be created again`}
    >
      <div className={common['stack']}>
        <span>
          The new policy does not allow them; the current one does. Existing keys keep their rights, unless
          authentication of their type is switched off.
        </span>
        <details>
          <summary>Which keys</summary>
          <ul className={common['list']}>
            {refused.map(({ keyId, name, reasons: why }) => (
              <li key={keyId} className="wrap">
                <bdi>{name}</bdi> <code>{keyId}</code>: {why.map((one) => reasons[one] ?? one).join(', ')}
              </li>
            ))}
          </ul>
          {keys > refused.length && <p>And {countOf(keys - refused.length, 'more key')}.</p>}
        </details>
      </div>
    </Alert>
  );
}
