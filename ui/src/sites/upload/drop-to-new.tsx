import { useCarry } from './carried.ts';
import { DropArea } from './drop-area.tsx';

/** Makes a page without a form take what is dropped, on the way to the form of a new site. */
export function DropToNew() {
  return <DropArea says="Drop it to make a new site" onPicked={useCarry()} />;
}
