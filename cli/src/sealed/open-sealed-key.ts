import { readFile } from 'node:fs/promises';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import { decrypt, type SealedForm } from './decrypt.ts';

type Form = {
  readonly form: SealedForm;
  readonly name: string;
  readonly looksLike: RegExp;
  /** What the file of the private key must hold. */
  readonly privateKey: string;
  readonly isPrivateKey: (text: string) => boolean;
};

const forms: readonly Form[] = [
  {
    form: 'age',
    name: 'an age file',
    looksLike: /^-----BEGIN AGE ENCRYPTED FILE-----\r?\n/,
    privateKey: 'an identity of age, as age-keygen writes it: AGE-SECRET-KEY-1…',
    isPrivateKey: (text) => /^AGE-SECRET-KEY-/m.test(text),
  },
  {
    form: 'jwe',
    name: 'a JWE',
    looksLike: /^[\w-]+(?:\.[\w-]+){4}$/,
    privateKey: 'a private JWK: EC or OKP, with d',
    isPrivateKey: (text) => /^\{[^]*"d"\s*:/.test(text),
  },
  {
    form: 'box',
    name: 'a sealed box',
    looksLike: /^[A-Za-z0-9+/]{100,}={0,2}$/,
    privateKey: 'the 32 bytes of an X25519 private key in base64',
    isPrivateKey: (text) => /^[A-Za-z0-9+/]{43}=$/.test(text),
  },
];

/** `postern keys open`: the key that a server sealed to this private key. Sends nothing. @throws Failure of the codes 1, 2 */
export async function openSealedKey(file: string, privateKeyFile: string, io: Io): Promise<Result> {
  if (file === '-' && privateKeyFile === '-') throw wrongUsage('FILE and --private-key both read stdin.');
  const sealed = await textOf(file, io);
  const sent = forms.find(({ looksLike }) => looksLike.test(sealed));
  if (sent === undefined)
    throw wrongUsage(
      `${nameOf(file)} holds no sealed key.`,
      'It must hold the text of sealed.value alone: a compact JWE, an armored age file or a sealed box in base64.',
    );
  const privateKey = await textOf(privateKeyFile, io);
  if (!sent.isPrivateKey(privateKey))
    throw wrongUsage(
      `${nameOf(privateKeyFile)} holds no private key for ${sent.name}.`,
      `It must hold ${sent.privateKey}.`,
    );
  const key = new TextDecoder().decode(await decrypt(sent.form, sealed, privateKey).catch(notOpened));
  // Prints nothing else: anyone with the public key can seal any text.
  if (!/^[a-z][a-z0-9]{0,15}_(?:pat|svc)_[0-9A-Za-z]{50}$/.test(key))
    throw new Failure('not_a_key', 1, 'The sealed text is not a key.');
  return { data: { key }, text: `${key}\n` };
}

const nameOf = (file: string) => (file === '-' ? 'stdin' : file);

async function textOf(file: string, io: Io): Promise<string> {
  const text = file === '-' ? await io.readInput() : await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) throw wrongUsage(`${file} cannot be read.`);
  return text.trim();
}

function notOpened(): never {
  throw new Failure('not_opened', 1, 'This private key does not open the sealed key.', {
    hint: 'The key was sealed to another public key, or the file was changed.',
  });
}
