//! Pictures that signatures know by what they show, against sigtool and clamscan where they are installed.

use std::io::Cursor;
use std::process::Command;
use std::sync::Arc;

use crate::peer::Random;
use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use scan::{Builder, Scan};
use stream::FileType;
use stream::law::{self, Told};

const FORMATS: [(ImageFormat, &str); 6] = [
    (ImageFormat::Png, "png"),
    (ImageFormat::Jpeg, "jpg"),
    (ImageFormat::Gif, "gif"),
    (ImageFormat::Bmp, "bmp"),
    (ImageFormat::Tiff, "tiff"),
    (ImageFormat::WebP, "webp"),
];

/// Rectangles over a gradient, or noise.
fn picture(seed: u64) -> DynamicImage {
    let mut random = Random(seed);
    let (width, height) = (20 + random.below(300) as u32, 20 + random.below(200) as u32);
    let noisy = random.below(5) == 0;
    let mut picture = RgbaImage::from_fn(width, height, |x, y| match noisy {
        true => Rgba([random.next() as u8, random.next() as u8, random.next() as u8, 255]),
        false => Rgba([(x * 255 / width) as u8, (y * 255 / height) as u8, 128, 255]),
    });
    for _ in 0..if noisy { 0 } else { 8 } {
        let colour =
            Rgba([random.next() as u8, random.next() as u8, random.next() as u8, 255 - random.below(90) as u8]);
        let (left, top) = (random.below(width as usize) as u32, random.below(height as usize) as u32);
        for x in left..width.min(left + 10 + random.below(150) as u32) {
            for y in top..height.min(top + 10 + random.below(100) as u32) {
                picture.put_pixel(x, y, colour);
            }
        }
    }
    DynamicImage::ImageRgba8(picture)
}

fn encoded(picture: &DynamicImage, format: ImageFormat, kind: u64) -> Vec<u8> {
    let picture = match (format, kind) {
        (ImageFormat::Jpeg, 0) | (ImageFormat::Png, 1) => DynamicImage::ImageLuma8(picture.to_luma8()),
        (ImageFormat::Jpeg, _) | (ImageFormat::Png, 2) => DynamicImage::ImageRgb8(picture.to_rgb8()),
        (ImageFormat::Png, 3) => DynamicImage::ImageRgb16(picture.to_rgb16()),
        _ => picture.clone(),
    };
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).expect("a picture");
    bytes.into_inner()
}

fn told(database: &str, file: &[u8]) -> Vec<Told> {
    let mut builder = Builder::new();
    builder.add("p.ldb", database.as_bytes()).expect("a database");
    let database = builder.build();
    assert_eq!(database.census().refused, []);
    law::tell(Scan::new(Arc::new(database), FileType::Image, None), file)
}

/// The hash that sigtool prints.
fn sigtool(path: &std::path::Path) -> Option<String> {
    let output = Command::new("sigtool").arg("--fuzzy-img").arg(path).output().expect("sigtool runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim().rsplit_once(": ").map(|(_, hash)| hash.to_owned())
}

#[test]
fn hashes_are_those_of_sigtool() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("pictures");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for seed in 0..25 {
        let picture = picture(seed);
        for (format, ending) in FORMATS {
            let path = folder.join(format!("{seed}.{ending}"));
            let bytes = encoded(&picture, format, seed % 4);
            std::fs::write(&path, &bytes).expect("written");
            let Some(hash) = sigtool(&path) else { continue };
            count += 1;
            let ldb = format!("Known;Engine:150-255,Target:0;0;fuzzy_img#{hash}#0\n");
            if crate::peer::names(&told(&ldb, &bytes)).len() != 1 {
                wrong.push(format!("{seed}.{ending}: {hash}"));
            }
        }
    }
    std::fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{} of {count}: {wrong:?}", wrong.len());
    assert!(count >= 125, "sigtool has too few hashes: {count}");
}

#[test]
fn signatures_of_pictures_hold_as_with_clamscan() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("known");
    let path = folder.join("p.png");
    std::fs::write(&path, encoded(&picture(3), ImageFormat::Png, 0)).expect("written");
    let hash = sigtool(&path).expect("a hash");
    let ldb = format!(
        "Known;Engine:150-255,Target:0;0;fuzzy_img#{hash}#0\nShort;Engine:150-255,Target:0;0;fuzzy_img#{hash}\n\
         Graphics;Engine:150-255,Target:5;0;fuzzy_img#{hash}#0\nMail;Engine:150-255,Target:4;0;fuzzy_img#{hash}#0\n\
         Both;Engine:150-255,Target:0;0&1;49484452;fuzzy_img#{hash}#0\nNeither;Engine:150-255,Target:0;0&1;deadbeef;fuzzy_img#{hash}#0\n\
         Either;Engine:150-255,Target:0;0|1;deadbeef;fuzzy_img#{hash}#0\nOther;Engine:150-255,Target:0;0;fuzzy_img#0123456789abcdef#0\n\
         Not;Engine:150-255,Target:0;0&1=0;49484452;fuzzy_img#0123456789abcdef#0\n\
         Hot;Engine:150-255,Target:0;0&1=0;49484452;fuzzy_img#{hash}#0\n"
    );
    let mut wrong = String::new();
    let files = [(FileType::Image, path)];
    let count = crate::peer::compare(&folder, &[("p.ldb", ldb)], &files, &[], &mut wrong);
    std::fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 5, "{count}");
}

#[test]
fn the_law_holds_and_what_is_too_large_is_not_looked_at() {
    let bytes = encoded(&picture(7), ImageFormat::Png, 0);
    // Of a picture of one colour only the lowest frequency is above the median.
    let plain = encoded(
        &DynamicImage::ImageRgb8(image::RgbImage::from_pixel(64, 64, image::Rgb([90, 90, 90]))),
        ImageFormat::Bmp,
        0,
    );
    let ldb = "Plain;Engine:150-255,Target:5;0;fuzzy_img#8000000000000000#0\n";
    let mut builder = Builder::new();
    builder.add("p.ldb", ldb.as_bytes()).expect("a database");
    let database = Arc::new(builder.build());
    for file in [&bytes, &plain] {
        law::holds(|| Scan::new(database.clone(), FileType::Image, None), file);
    }
    assert_eq!(crate::peer::names(&told(ldb, &plain)).len(), 1);
    assert_eq!(told(ldb, &bytes), [Told::Keep(0..4 << 20), Told::End(bytes.len())]);
    let behind = [&plain[..], &vec![0; 4 << 20]].concat();
    assert_eq!(told(ldb, &behind), [Told::Keep(0..4 << 20), Told::End(behind.len())]);
    // Nobody asks for pictures.
    assert_eq!(told("N;Target:5;0;deadbeef\n", &plain), [Told::End(plain.len())]);
}
