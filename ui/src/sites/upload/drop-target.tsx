import type { Schemas } from '../../api/contract.ts';
import { UploadIcon } from '../../shell/icons.tsx';
import { bytesInWords } from '../../shell/bytes.ts';
import { Picker } from './picker.tsx';
import type { Picked } from './picked.ts';
import cards from './upload.module.css';

type TargetProps = {
  readonly upload: Schemas['SiteCapabilities']['upload'];
  readonly onPicked: (picked: Picked) => void;
};

/** The first step: drop files anywhere, or use the buttons. */
export function DropTarget({ upload, onPicked }: TargetProps) {
  return (
    <section className={cards['target']} aria-label="Choose what to publish">
      <UploadIcon size={32} />
      <p>
        <b>Drop a folder anywhere on this page</b>
      </p>
      <p className="quiet">or a ZIP, a tar.gz, or one HTML page</p>
      <Picker onPicked={onPicked} />
      <p className={cards['limits']}>
        At most {upload.maxFiles.toLocaleString()} files of {bytesInWords(upload.maxFileBytes)},{' '}
        {bytesInWords(upload.maxExtractedBytes)} together; an archive may have{' '}
        {bytesInWords(upload.maxUploadBytes)}. Nothing is sent until you publish.
      </p>
    </section>
  );
}
