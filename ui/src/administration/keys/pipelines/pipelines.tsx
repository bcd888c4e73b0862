import { Badge, Button, Modal, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, unwrap } from '../../../api/client.ts';
import type { Schemas } from '../../../api/contract.ts';
import styles from '../../../keys/detail/key-page.module.css';
import { isOver, type Key, standingOf } from '../../../keys/key-words.ts';
import { trustBounds } from '../../../keys/trust/bounds.ts';
import { choiceLabel, claimLabel, type Issuer, platforms } from '../../../keys/trust/platforms.ts';
import { requiredOf } from '../../../keys/trust/rule-draft.ts';
import { List } from '../../../lists/list.tsx';
import { Confirm } from '../../../shell/confirm.tsx';
import { focusIfLost } from '../../../shell/focus.ts';
import { FreshSignIn } from '../../../shell/fresh-sign-in.tsx';
import shared from '../../../shell/page.module.css';
import { trustedIssuers, trustRulesOf } from '../../queries.ts';
import { TextLink } from '../../text-link.tsx';
import { AddRule } from './add-rule.tsx';
import { EraseValue } from './erase-value.tsx';
import { PipelineJobs } from './pipeline-jobs.tsx';
import own from './pipelines.module.css';
import { TryToken } from './try-token.tsx';

type Rule = Schemas['TrustRule'];
type Step = 'add' | 'try' | 'erase' | { readonly remove: Rule };

/** Which pipelines can use a service key: its trust rules, a trial of them, the job to copy, and the end of its value. */
export function Pipelines({ of: key, now }: { of: Key; now: number }) {
  const found = useQuery(trustRulesOf(key.id));
  const { data: issuers } = useQuery(trustedIssuers);
  const [step, setStep] = useState<Step>();
  const heading = useRef<HTMLHeadingElement>(null);
  const close = () => setStep(undefined);
  const done = () => focusIfLost(heading.current);
  const isActive = !isOver(standingOf(key, now));
  const rules = found.data ?? [];
  const leaving = typeof step === 'object' ? step.remove : undefined;
  return (
    <section className={styles['card']} aria-labelledby="pipelines">
      <div className={styles['bar']}>
        <Title order={2} size="h4" id="pipelines" tabIndex={-1} ref={heading}>
          Pipelines
        </Title>
        {isActive && (
          <div className={shared['actions']}>
            {rules.length > 0 && (
              <Button size="xs" variant="default" onClick={() => setStep('try')}>
                Try an ID token
              </Button>
            )}
            {rules.length < trustBounds.maxRules && (
              <Button size="xs" variant="default" onClick={() => setStep('add')}>
                Add a rule
              </Button>
            )}
            {key.credential === 'value' && (
              <Button size="xs" color="red" variant="light" onClick={() => setStep('erase')}>
                Erase the value
              </Button>
            )}
          </div>
        )}
      </div>
      <p className={shared['hint']}>
        The platform of a pipeline signs an ID token, which says which job it is. Postern exchanges it for a
        token of this key if one of these rules accepts it.
      </p>
      <List
        what="trust rules"
        found={found}
        empty={<Text size="sm">No rule yet: this key accepts no ID token.</Text>}
      >
        {(items) => (
          <ul className={own['rules']}>
            {items.map((rule) => (
              <RuleItem
                key={rule.id}
                of={rule}
                issuers={issuers}
                {...(isActive && { onRemove: () => setStep({ remove: rule }) })}
              />
            ))}
          </ul>
        )}
      </List>
      {isActive && rules.length > 0 && <PipelineJobs of={key} rules={rules} issuers={issuers ?? []} />}
      <Modal opened={step === 'add'} title="Add a trust rule" size="lg" onClose={close}>
        {step === 'add' && (
          <FreshSignIn>
            {issuers?.length === 0 && <NoIssuer />}
            {issuers !== undefined && issuers.length > 0 && (
              <AddRule keyId={key.id} issuers={issuers} onClose={close} onDone={done} />
            )}
          </FreshSignIn>
        )}
      </Modal>
      <Modal opened={step === 'try'} title="Try an ID token" size="lg" onClose={close}>
        {step === 'try' && <TryToken keyId={key.id} />}
      </Modal>
      <Modal opened={step === 'erase'} title="Erase the value of this key?" onClose={close}>
        {step === 'erase' && (
          <EraseValue of={key} hasRules={rules.length > 0} onClose={close} onDone={done} />
        )}
      </Modal>
      <Modal opened={leaving !== undefined} title="Remove this trust rule?" onClose={close}>
        {leaving !== undefined && (
          <Confirm
            act={() =>
              unwrap(
                api.DELETE('/tokens/{id}/trust/{rule}', {
                  params: { path: { id: key.id, rule: leaving.id } },
                }),
              )
            }
            said="The trust rule is removed."
            refresh={['admin', 'keys']}
            confirm="Remove the rule"
            keep="Keep it"
            onClose={close}
            onDone={done}
          >
            <RuleText of={leaving} issuers={issuers} />
            <Text size="sm" mt="sm">
              Tokens that jobs got by this rule end within a second. A rule cannot be changed: add another one
              instead.
            </Text>
          </Confirm>
        )}
      </Modal>
    </section>
  );
}

function NoIssuer() {
  return (
    <Text size="sm">
      The key policy lists no issuer yet. Add one under{' '}
      <TextLink to="/admin/access-controls" inherit underline="always">
        Access controls
      </TextLink>{' '}
      first.
    </Text>
  );
}

type RuleProps = {
  readonly of: Rule;
  /** The issuers of the key policy; undefined while they load. */
  readonly issuers: readonly Issuer[] | undefined;
};

function RuleItem({ of: rule, issuers, onRemove }: RuleProps & { readonly onRemove?: () => void }) {
  return (
    <li>
      <RuleText of={rule} issuers={issuers} />
      {onRemove !== undefined && (
        <Button variant="default" size="xs" aria-label={`Remove the rule ${rule.id}`} onClick={onRemove}>
          Remove
        </Button>
      )}
    </li>
  );
}

function RuleText({ of: rule, issuers }: RuleProps) {
  const preset = issuers?.find(({ url }) => url === rule.issuer)?.preset;
  const required = preset === undefined ? [] : requiredOf(preset).flat();
  // Required claims come first, in the order of the form.
  const claims = Object.entries(rule.claims).toSorted(
    ([one], [other]) => placeOf(one, required) - placeOf(other, required),
  );
  return (
    <div className={own['rule']}>
      <b>
        {preset === undefined ? 'Issuer' : platforms[preset].label}: <code>{rule.issuer}</code>
      </b>
      {issuers !== undefined && preset === undefined && (
        <Badge color="red">The key policy no longer lists this issuer</Badge>
      )}
      <dl>
        {claims.map(([name, text]) => (
          <div key={name}>
            <dt title={name}>{claimLabel(preset, name)}</dt>
            <dd>{choiceLabel(preset, name, text) ?? <code>{text}</code>}</dd>
          </div>
        ))}
      </dl>
      <span className="quiet">
        A token lasts {minutes(rule.maxTtlMinutes)}. An ID token may be {minutes(rule.maxAgeMinutes)} old, and
        can be exchanged {rule.singleUse ? 'once' : 'more than once'}.
      </span>
    </div>
  );
}

function placeOf(name: string, required: readonly string[]): number {
  const place = required.indexOf(name);
  return place < 0 ? required.length : place;
}

const minutes = (count: number) => `${count} ${count === 1 ? 'minute' : 'minutes'}`;
