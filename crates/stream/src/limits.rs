//! The bounds of one inspection.

/// All bounds of one inspection: on memory, depth, counts and ratios. The length of the inspected content has no bound.
/// Reaching a bound is a [`Class::Limit`](crate::Class::Limit) finding, never a silent clean.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// Containers within containers (archives, mails in mails, compressed streams), from the outermost object on.
    /// A mail with a zip with a tar.gz is 4 deep.
    pub depth_max: u32,
    /// Multiparts and messages nested inside one mail without a coding between them.
    pub multipart_depth_max: u32,
    /// Objects opened in one inspection, header fields not counted. Stops archives of a million empty files.
    pub objects_max: u32,
    /// Header fields in one header; the rest is emitted as one field.
    pub fields_max: u32,
    /// Bytes made out of one byte by decompression, over the whole of an inspection, beyond `ratio_free_bytes`.
    pub ratio_max: u32,
    /// Decompressed bytes that are never counted as a bomb, whatever their ratio.
    pub ratio_free_bytes: u64,
    /// Bytes of a name, a media type or a charset that are kept.
    pub name_bytes_max: u32,
    /// Bytes of the value of one structured header field (`Content-*`) that are parsed.
    pub field_bytes_max: u32,
    /// Bytes of one window between two stages.
    pub window_bytes: u32,
    /// Bytes kept at the request of stages, over the whole of an inspection at any one time.
    pub spool_bytes_max: u32,
    /// Bytes of working memory (dictionary, block) that one decompressor may take.
    pub codec_bytes_max: u32,
    /// Archive members remembered for comparing them with the directory at the end.
    pub directory_entries_max: u32,
    /// Bytes hashed to make keys of passwords, over the whole of an inspection. One try at a zip member costs 500 KB,
    /// at a 7z archive 10 MB.
    pub key_bytes_max: u64,
    /// Milliseconds of processor time, over the whole of an inspection, where the host hands in a clock. An inspection of much
    /// content gets more.
    pub cpu_ms_max: u64,
    /// Pixels decoded to compare pictures, over the whole of an inspection.
    pub pixels_max: u64,
    /// Work of regular expressions at the ends of objects, over the whole of an inspection: about one unit for each byte
    /// searched and for each step back.
    pub search_work_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            depth_max: 24,
            multipart_depth_max: 32,
            objects_max: 10_000,
            fields_max: 4_000,
            ratio_max: 200,
            ratio_free_bytes: 64 << 20,
            name_bytes_max: 1_024,
            field_bytes_max: 8_192,
            window_bytes: 4_096,
            spool_bytes_max: 64 << 20,
            codec_bytes_max: 64 << 20,
            directory_entries_max: 10_000,
            key_bytes_max: 512 << 20,
            cpu_ms_max: 20_000,
            pixels_max: 64 << 20,
            search_work_max: 2 << 30,
        }
    }
}
