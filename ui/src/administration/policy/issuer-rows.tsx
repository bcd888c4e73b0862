import { Button, NativeSelect, Textarea, TextInput } from '@mantine/core';
import { platforms, type Preset, presets } from '../../keys/trust/platforms.ts';
import { PlusIcon } from '../../shell/icons.tsx';
import common from '../admin.module.css';
import { type EditedIssuer, issuersOf, textOfKeys } from './issuers.ts';
import styles from './issuer-rows.module.css';

type Props = {
  readonly bounds: { readonly maxEntries: number; readonly maxCharacters: number };
  readonly value: unknown;
  /** By the path below the list, such as `0.url`. */
  readonly errors: Readonly<Record<string, string>>;
  readonly onChange: (issuers: readonly EditedIssuer[]) => void;
};

/** One group of inputs for each trusted issuer. */
export function IssuerRows({ bounds, value, errors, onChange }: Props) {
  const issuers = issuersOf(value);
  const isListed = (preset: Preset) => issuers.some(({ url }) => url === platforms[preset].url);

  function add(): void {
    const preset = presets.find((one) => !isListed(one)) ?? 'other';
    onChange([...issuers, { preset, url: platforms[preset].url }]);
  }

  return (
    <div className={common['stack']}>
      {issuers.map((issuer, at) => (
        // The index is the key: two new rows are otherwise equal, and rows hold no state.
        <IssuerRow
          key={at}
          name={`issuer ${at + 1}`}
          issuer={issuer}
          maxCharacters={bounds.maxCharacters}
          urlError={errors[`${at}.url`]}
          keysError={errorInKeys(`${at}.jwks`, errors)}
          onChange={(next) => onChange(issuers.map((one, place) => (place === at ? next : one)))}
          onRemove={() => onChange(issuers.filter((_issuer, place) => place !== at))}
        />
      ))}
      {issuers.length < bounds.maxEntries && (
        <div>
          <Button variant="default" leftSection={<PlusIcon />} onClick={add}>
            Add issuer
          </Button>
        </div>
      )}
    </div>
  );
}

/** The server names the member of a key that is wrong, such as `0.jwks.keys.0.n`. */
function errorInKeys(path: string, errors: Props['errors']): string | undefined {
  const found = Object.entries(errors).find(([one]) => one === path || one.startsWith(`${path}.`));
  if (found === undefined) return undefined;
  const [one, error] = found;
  return one === path ? error : `${one.slice(path.length + 1)}: ${error}`;
}

type RowProps = {
  /** For screen readers. */
  readonly name: string;
  readonly issuer: EditedIssuer;
  readonly maxCharacters: number;
  readonly urlError: string | undefined;
  readonly keysError: string | undefined;
  readonly onChange: (issuer: EditedIssuer) => void;
  readonly onRemove: () => void;
};

function IssuerRow({ name, issuer, maxCharacters, urlError, keysError, onChange, onRemove }: RowProps) {
  const { jwks, ...rest } = issuer;
  const isUsual = issuer.url === platforms[issuer.preset].url;

  function choose(label: string): void {
    const preset = presets.find((one) => platforms[one].label === label) ?? issuer.preset;
    // An address that was typed stays.
    onChange({ ...issuer, preset, ...(isUsual ? { url: platforms[preset].url } : {}) });
  }

  return (
    <fieldset className={styles['issuer']} aria-label={`Trusted ${name}`}>
      <NativeSelect
        label="Platform"
        radius="md"
        data={presets.map((preset) => platforms[preset].label)}
        value={platforms[issuer.preset].label}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
      />
      <TextInput
        label="Address"
        description={platforms[issuer.preset].says}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        required
        maxLength={maxCharacters}
        autoComplete="off"
        spellCheck={false}
        placeholder="https://issuer.example.com"
        value={issuer.url}
        error={urlError}
        onChange={({ currentTarget }) => onChange({ ...issuer, url: currentTarget.value })}
      />
      <NativeSelect
        label="Public keys"
        radius="md"
        data={[
          { value: 'fetched', label: 'Postern fetches them' },
          { value: 'pasted', label: 'I paste them' },
        ]}
        value={jwks === undefined ? 'fetched' : 'pasted'}
        onChange={({ currentTarget }) =>
          onChange(currentTarget.value === 'pasted' ? { ...issuer, jwks: '' } : rest)
        }
      />
      <Button variant="default" aria-label={`Remove ${name}`} onClick={onRemove}>
        Remove
      </Button>
      {jwks !== undefined && (
        <Textarea
          className={styles['keys']}
          label="Key set"
          description="JSON as the issuer publishes it (JWKS), for an issuer that Postern cannot reach. Replace it when the issuer changes its keys."
          radius="md"
          rows={6}
          autoComplete="off"
          spellCheck={false}
          value={textOfKeys(jwks)}
          error={keysError}
          onChange={({ currentTarget }) => onChange({ ...issuer, jwks: currentTarget.value })}
        />
      )}
    </fieldset>
  );
}
