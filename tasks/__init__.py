"""The work: tasks take frames and return frames; a file is a stage, a folder a catalogue."""
