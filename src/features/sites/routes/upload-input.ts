import type { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import type { RequestUpload, UploadPart, UploadType } from '../../../platform/http.ts';
import { inputWords } from '../../../platform/input-words.ts';
import { type Received, type Upload, type UploadKind, uploadKindOf } from '../sites.ts';

/** What clients send as an upload: a raw archive or page with its options in the query, or a form with one file. */
export const contentTypes: readonly UploadType[] = [
  'multipart/form-data',
  'application/zip',
  'application/gzip',
  'text/html',
];

const kindOfType: Readonly<Record<string, UploadKind>> = {
  'application/zip': 'zip',
  'application/x-zip-compressed': 'zip',
  'application/gzip': 'tar.gz',
  'application/x-gzip': 'tar.gz',
  'text/html': 'html',
};

/**
 * Reads the one file of an upload wherever it comes, and the fields before and after it; then reauthorizes the caller.
 * @throws AppError invalid_body when there is no file, or a field is not valid
 */
export async function readUpload<T>(
  upload: RequestUpload,
  schema: z.ZodType<T>,
  receive: (upload: Upload) => Promise<Received>,
): Promise<{ received: Received; fields: T; fileName: string }> {
  const texts: Record<string, string> = {};
  let file: { received: Received; fileName: string } | undefined;
  for await (const part of upload.parts()) {
    if (part.kind === 'field') addField(texts, part);
    else {
      file = {
        received: await receive({
          kind: kindOf(part),
          stream: part.stream,
          fileName: part.fileName,
          left: upload.left,
        }),
        fileName: part.fileName,
      };
    }
  }
  if (file === undefined)
    throw new AppError('invalid_body', {
      message: 'The form contains no file.',
      hint: 'Send it in the field "file", such as: curl -F file=@site.zip',
    });
  const fields = parseFields(schema, texts);
  await upload.reauthorize();
  return { ...file, fields };
}

function addField(texts: Record<string, string>, { name, value }: Extract<UploadPart, { kind: 'field' }>) {
  if (Object.hasOwn(texts, name))
    throw new AppError('invalid_body', { message: `${name.slice(0, 50)}: was sent twice` });
  texts[name] = value;
}

function parseFields<T>(schema: z.ZodType<T>, texts: Record<string, string>): T {
  const parsed = schema.safeParse(texts, { error: inputWords });
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => ({
    field: (issue.code === 'unrecognized_keys' ? issue.keys : issue.path).map(String).join('.').slice(0, 100),
    problem: issue.message,
  }));
  throw new AppError('invalid_body', {
    message: `${fields[0]?.field}: ${fields[0]?.problem}`,
    details: { fields },
  });
}

/** The file's name takes precedence over its type: browsers and shells guess types in many ways. */
function kindOf({ fileName, contentType, stream }: Extract<UploadPart, { kind: 'file' }>): UploadKind {
  const kind = uploadKindOf(fileName) ?? kindOfType[contentType];
  if (kind !== undefined) return kind;
  stream.resume();
  throw new AppError('unsupported_media_type', {
    message: 'Postern cannot publish a file of this type. Send a .zip, .tar.gz or .html file.',
    hint: 'Pack a folder as a ZIP first, such as: zip -r site.zip .',
  });
}
