import { Button, Checkbox, NativeSelect, NumberInput, TextInput } from '@mantine/core';
import { PlusIcon } from '../../shell/icons.tsx';
import { trustBounds } from './bounds.ts';
import { claimLabel, type Issuer, issuerLabel, platforms, type Preset } from './platforms.ts';
import {
  type ClaimDraft,
  claimNamed,
  emptyClaim,
  firstRule,
  requiredOf,
  type RuleDraft,
} from './rule-draft.ts';
import styles from './trust.module.css';

type FieldsProps = {
  readonly rule: RuleDraft;
  /** The issuers of the key policy. */
  readonly issuers: readonly Issuer[];
  /** By the names of `mistakesInRule`. */
  readonly mistakes: Readonly<Record<string, string>>;
  readonly onChange: (rule: RuleDraft) => void;
};

/** Which ID tokens a key accepts: the issuer, the claims with their texts, and how long a token lasts. */
export function RuleFields({ rule, issuers, mistakes, onChange }: FieldsProps) {
  const { preset, needed, more } = rule;
  const change = (part: Partial<RuleDraft>) => onChange({ ...rule, ...part });
  const changeMore = (at: number, part: Partial<ClaimDraft>) =>
    change({ more: more.map((claim, place) => (place === at ? { ...claim, ...part } : claim)) });

  function chooseIssuer(url: string): void {
    const issuer = issuers.find((one) => one.url === url);
    if (issuer === undefined) return;
    onChange(issuer.preset === preset ? { ...rule, issuer: url } : firstRule(issuer));
  }

  return (
    <div className={styles['fields']}>
      <NativeSelect
        label="Issuer"
        description="The platform that signs the ID tokens. The key policy lists them."
        radius="md"
        data={issuers.map((one) => ({ value: one.url, label: issuerLabel(one) }))}
        value={rule.issuer}
        onChange={({ currentTarget }) => chooseIssuer(currentTarget.value)}
      />
      {needed.map((claim, at) => (
        <NeededClaim
          // A group has one place in the list.
          key={at}
          preset={preset}
          names={requiredOf(preset)[at] ?? []}
          claim={claim}
          error={mistakes[`needed.${at}`]}
          onChange={(next) => change({ needed: needed.map((one, place) => (place === at ? next : one)) })}
        />
      ))}
      {more.map((claim, at) => (
        // The index is the key: two new rows are otherwise equal, and rows hold no state.
        <fieldset key={at} className={styles['claim']} aria-label={`Further claim ${at + 1}`}>
          <TextInput
            label="Claim"
            maxLength={200}
            autoComplete="off"
            spellCheck={false}
            value={claim.name}
            error={mistakes[`more.${at}.name`]}
            onChange={({ currentTarget }) => changeMore(at, { name: currentTarget.value })}
          />
          <TextInput
            label="Text"
            maxLength={500}
            autoComplete="off"
            spellCheck={false}
            value={claim.text}
            error={mistakes[`more.${at}.text`]}
            onChange={({ currentTarget }) => changeMore(at, { text: currentTarget.value })}
          />
          <Button
            variant="default"
            aria-label={`Remove further claim ${at + 1}`}
            onClick={() => change({ more: more.filter((_claim, place) => place !== at) })}
          >
            Remove
          </Button>
        </fieldset>
      ))}
      <div>
        <Button
          size="xs"
          variant="default"
          leftSection={<PlusIcon size={15} />}
          onClick={() => change({ more: [...more, emptyClaim] })}
        >
          Add a claim
        </Button>
        <p className={styles['says']}>
          {needed.length === 0 ? 'Name at least two claims.' : 'More claims make the rule narrower.'} An ID
          token must have each claim with the same text. Name a nested claim by its path, such as{' '}
          <code>/kubernetes.io/pod/name</code>.
          {preset === 'github' && (
            <>
              {' '}
              Pull requests are refused unless a claim names <code>event_name</code>.
            </>
          )}
        </p>
      </div>
      <div className={styles['times']}>
        <Minutes
          label="Lifetime of a token"
          says="A longer job exchanges again."
          bounds={trustBounds.maxTtlMinutes}
          value={rule.maxTtlMinutes}
          error={mistakes['maxTtlMinutes']}
          onChange={(maxTtlMinutes) => change({ maxTtlMinutes })}
        />
        <Minutes
          label="Maximum age of an ID token"
          says="Counted from its signature."
          bounds={trustBounds.maxAgeMinutes}
          value={rule.maxAgeMinutes}
          error={mistakes['maxAgeMinutes']}
          onChange={(maxAgeMinutes) => change({ maxAgeMinutes })}
        />
      </div>
      <Checkbox
        label="An ID token can be exchanged only once"
        description={
          trustBounds.presets[preset].singleUse
            ? 'A job gets a new ID token whenever it asks for one.'
            : `${platforms[preset].label} gives one ID token for a whole job or hour. If this is on, a job cannot exchange it again.`
        }
        checked={rule.singleUse}
        onChange={({ currentTarget }) => change({ singleUse: currentTarget.checked })}
      />
    </div>
  );
}

type NeededProps = {
  readonly preset: Preset;
  /** The claims of which the rule names one. */
  readonly names: readonly string[];
  readonly claim: ClaimDraft;
  readonly error: string | undefined;
  readonly onChange: (claim: ClaimDraft) => void;
};

function NeededClaim({ preset, names, claim, error, onChange }: NeededProps) {
  const { name, text } = claim;
  const words = platforms[preset].claims[name];
  const label = claimLabel(preset, name);
  return (
    <>
      {names.length > 1 && (
        <NativeSelect
          label="Limit the jobs by"
          radius="md"
          data={names.map((one) => ({ value: one, label: claimLabel(preset, one) }))}
          value={name}
          onChange={({ currentTarget }) => onChange(claimNamed(preset, currentTarget.value))}
        />
      )}
      {words?.choices !== undefined ? (
        <NativeSelect
          label={label}
          description={words.says}
          radius="md"
          data={[...words.choices]}
          value={text}
          onChange={({ currentTarget }) => onChange({ name, text: currentTarget.value })}
        />
      ) : (
        <TextInput
          label={label}
          description={words?.says}
          maxLength={500}
          autoComplete="off"
          spellCheck={false}
          value={text}
          error={error}
          onChange={({ currentTarget }) => onChange({ name, text: currentTarget.value })}
        />
      )}
    </>
  );
}

type MinutesProps = {
  readonly label: string;
  readonly says: string;
  readonly bounds: { readonly min: number; readonly max: number };
  readonly value: number | string;
  readonly error: string | undefined;
  readonly onChange: (minutes: number | string) => void;
};

function Minutes({ label, says, bounds: { min, max }, value, error, onChange }: MinutesProps) {
  return (
    <NumberInput
      label={label}
      description={`${min} to ${max}. ${says}`}
      radius="md"
      hideControls
      decimalScale={0}
      suffix={value === 1 ? ' minute' : ' minutes'}
      value={value}
      error={error}
      onChange={onChange}
    />
  );
}
