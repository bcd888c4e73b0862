import type { Schemas } from '../../api/contract.ts';
import { trustBounds } from './bounds.ts';
import { type Issuer, platforms, type Preset } from './platforms.ts';

/** The input of the form for a trust rule, its mistakes, and the request. */
export type ClaimDraft = { readonly name: string; readonly text: string };

export type RuleDraft = {
  readonly issuer: string;
  readonly preset: Preset;
  /** One claim for each group that the preset requires, in its order. */
  readonly needed: readonly ClaimDraft[];
  readonly more: readonly ClaimDraft[];
  /** A number, or what a field for numbers has while it is empty. */
  readonly maxTtlMinutes: number | string;
  readonly maxAgeMinutes: number | string;
  readonly singleUse: boolean;
};

export const emptyClaim: ClaimDraft = { name: '', text: '' };

/** Claims that the preset requires: one of each group. */
export function requiredOf(preset: Preset): readonly (readonly string[])[] {
  return trustBounds.presets[preset].required;
}

export function firstRule({ url, preset }: Issuer): RuleDraft {
  const { maxAgeMinutes, singleUse } = trustBounds.presets[preset];
  return {
    issuer: url,
    preset,
    needed: requiredOf(preset).map(([name = '']) => claimNamed(preset, name)),
    // Without required claims, a rule needs two that the administrator names.
    more: requiredOf(preset).length === 0 ? [emptyClaim, emptyClaim] : [],
    maxTtlMinutes: trustBounds.maxTtlMinutes.standard,
    maxAgeMinutes,
    singleUse,
  };
}

export function claimNamed(preset: Preset, name: string): ClaimDraft {
  return { name, text: platforms[preset].claims[name]?.choices?.[0]?.value ?? '' };
}

/** Mistakes by field: `needed.0`, `more.0.name`, `more.0.text`, `maxTtlMinutes`, `maxAgeMinutes`. The server checks the rest. */
export function mistakesInRule(rule: RuleDraft): Readonly<Record<string, string>> {
  const named = [...rule.needed, ...rule.more].map(({ name }) => name.trim());
  const isTwice = (name: string) => named.filter((one) => one === name.trim()).length > 1;
  const found = [
    ...rule.needed.map(({ text }, at) => [`needed.${at}`, mistakeInText(text)] as const),
    ...rule.more.flatMap(
      ({ name, text }, at) =>
        [
          [`more.${at}.name`, mistakeInName(name, isTwice(name))],
          [`more.${at}.text`, mistakeInText(text)],
        ] as const,
    ),
    ['maxTtlMinutes', mistakeInMinutes(rule.maxTtlMinutes, trustBounds.maxTtlMinutes)],
    ['maxAgeMinutes', mistakeInMinutes(rule.maxAgeMinutes, trustBounds.maxAgeMinutes)],
  ] as const;
  return Object.fromEntries(found.filter(([, mistake]) => mistake !== ''));
}

function mistakeInText(text: string): string {
  return text.trim() === '' ? 'Fill this in.' : '';
}

function mistakeInName(name: string, isTwice: boolean): string {
  if (name.trim() === '') return 'Name the claim, or remove it.';
  return isTwice ? 'The rule names this claim twice.' : '';
}

function mistakeInMinutes(value: number | string, { min, max }: { min: number; max: number }): string {
  const isWithin = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
  return isWithin ? '' : `Enter a whole number from ${min} to ${max}.`;
}

export function requestOf(rule: RuleDraft): Schemas['TrustRuleRequest'] {
  const claims = [...rule.needed, ...rule.more].map(({ name, text }) => [name.trim(), text.trim()] as const);
  return {
    issuer: rule.issuer,
    claims: Object.fromEntries(claims),
    maxTtlMinutes: Number(rule.maxTtlMinutes),
    maxAgeMinutes: Number(rule.maxAgeMinutes),
    singleUse: rule.singleUse,
  };
}
